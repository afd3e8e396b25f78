"""Data sets, and how their samples are divided among the clients and the server."""

from raysim.data.arrays import Arrays
from raysim.data.dataset import Dataset, Split
from raysim.data.federation import Federation, federate
from raysim.data.images import Images
from raysim.data.labelled import Labelled
from raysim.data.partition import Partitioner
from raysim.data.pool import PARTITIONS, Partition, PooledData
from raysim.data.public import Public
from raysim.data.quadratic import Quadratic
from raysim.data.server import SERVER_DATA, ServerData
from raysim.data.sets import DATA_SETS
from raysim.data.sizes import Sizes
from raysim.data.skew import FeatureSkew

__all__ = [
    "DATA_SETS",
    "PARTITIONS",
    "SERVER_DATA",
    "Arrays",
    "Dataset",
    "FeatureSkew",
    "Federation",
    "Images",
    "Labelled",
    "Partition",
    "Partitioner",
    "PooledData",
    "Public",
    "Quadratic",
    "ServerData",
    "Sizes",
    "Split",
    "federate",
]

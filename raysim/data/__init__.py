"""Data sets, and how their samples are divided among the clients and the server."""

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.federation import Federation, federate
from raysim.data.federation.labelled import Labelled
from raysim.data.federation.partition import Partitioner
from raysim.data.federation.pool import PARTITIONS, Partition, PooledData
from raysim.data.federation.public import Public
from raysim.data.federation.server import SERVER_DATA, ServerData
from raysim.data.federation.sizes import Sizes
from raysim.data.federation.skew import FeatureSkew
from raysim.data.sources.arrays import Arrays
from raysim.data.sources.images import Images
from raysim.data.sources.quadratic import Quadratic
from raysim.data.sources.sets import DATA_SETS

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

"""Data sets, and how their samples are divided among the clients and the server."""

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.federated import PARTITIONS, Federated, OneOfSources, Partition, divided, federated
from raysim.data.federation.federation import Federation, federate
from raysim.data.federation.partition import Partitioner
from raysim.data.federation.public import Public
from raysim.data.federation.server import SERVER_DATA, ServerData
from raysim.data.federation.sizes import Sizes
from raysim.data.federation.skew import FeatureSkew
from raysim.data.named import NamedArrays
from raysim.data.sources.arrays import Arrays
from raysim.data.sources.images import Images
from raysim.data.sources.quadratic import Quadratic
from raysim.data.sources.sets import SOURCES
from raysim.data.sources.source import Source
from raysim.data.sources.table import Table
from raysim.data.sources.tokenizers import Tokenizer
from raysim.data.sources.tokens import Tokens

__all__ = [
    "PARTITIONS",
    "SERVER_DATA",
    "SOURCES",
    "Arrays",
    "Dataset",
    "FeatureSkew",
    "Federated",
    "Federation",
    "Images",
    "NamedArrays",
    "OneOfSources",
    "Partition",
    "Partitioner",
    "Public",
    "Quadratic",
    "ServerData",
    "Sizes",
    "Source",
    "Split",
    "Table",
    "Tokenizer",
    "Tokens",
    "divided",
    "federate",
    "federated",
]

"""Data sets, and how their samples are divided among the clients and the server."""

from raysim.data.dataset import Dataset as Dataset
from raysim.data.dataset import Split as Split
from raysim.data.federation.federation import Federation as Federation
from raysim.data.federation.federation import federate as federate
from raysim.data.federation.partition import Partitioner as Partitioner
from raysim.data.federation.partition import Sizes as Sizes
from raysim.data.federation.server import SERVER_DATA as SERVER_DATA
from raysim.data.federation.server import Public as Public
from raysim.data.federation.server import ServerData as ServerData
from raysim.data.federation.skew import FeatureSkew as FeatureSkew
from raysim.data.meaning import NamedArrays as NamedArrays
from raysim.data.sources import SOURCES as SOURCES
from raysim.data.sources.arrays import Arrays as Arrays
from raysim.data.sources.images import Images as Images
from raysim.data.sources.source import PARTITIONS as PARTITIONS
from raysim.data.sources.source import Partition as Partition
from raysim.data.sources.source import Source as Source
from raysim.data.sources.source import divided as divided
from raysim.data.sources.source import require_division as require_division
from raysim.data.sources.synthetic import Quadratic as Quadratic
from raysim.data.sources.table import Table as Table
from raysim.data.sources.tokenizers import Tokenizer as Tokenizer
from raysim.data.sources.tokenizers import Tokens as Tokens

"""All data sets, each in a file of its own. To add one, import it here and put it into one of the tuples."""

from raysim.data.arrays import Arrays
from raysim.data.celeba import Celeba
from raysim.data.cifar import Cifar10, Cifar100
from raysim.data.digits import Digits
from raysim.data.femnist import Femnist
from raysim.data.huggingface import HuggingFace
from raysim.data.image_folder import ImageFolder
from raysim.data.images import Images
from raysim.data.isic2019 import Isic2019
from raysim.data.linear_regression import LinearRegression
from raysim.data.mnist import FashionMnist, Mnist
from raysim.data.parquet import Parquet
from raysim.data.pool import PooledData
from raysim.data.quadratic import Quadratic
from raysim.data.shakespeare import Shakespeare
from raysim.data.table import Table
from raysim.data.torch_dataset import TorchDataset

IMAGES: tuple[type[Images], ...] = (
    Digits,
    Mnist,
    FashionMnist,
    Cifar10,
    Cifar100,
    Parquet,
    ImageFolder,
    Isic2019,
    Femnist,
    Celeba,
    Arrays,
    HuggingFace,
    TorchDataset,
)
DATA_SETS: tuple[type[PooledData | Quadratic], ...] = (
    *IMAGES,
    Table,
    Shakespeare,
    LinearRegression,
    Quadratic,
)

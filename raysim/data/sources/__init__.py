"""All sources of data. To add one, import it here and put it into one of the tuples."""

from raysim.data.sources.arrays import Arrays, TorchDataset
from raysim.data.sources.client_files import ClientFiles
from raysim.data.sources.huggingface import HuggingFace, Parquet
from raysim.data.sources.image_folder import ImageFolder, Isic2019
from raysim.data.sources.images import Digits, Images
from raysim.data.sources.leaf import Celeba, Femnist
from raysim.data.sources.shakespeare import Shakespeare
from raysim.data.sources.source import Source
from raysim.data.sources.synthetic import LinearRegression, Quadratic
from raysim.data.sources.table import Table
from raysim.data.sources.text import Text
from raysim.data.sources.vision import Cifar10, Cifar100, FashionMnist, Mnist

IMAGES: tuple[type[Images], ...] = (
    *(Digits, Mnist, FashionMnist, Cifar10, Cifar100, Parquet, ImageFolder, Isic2019, Femnist, Celeba),
    *(Arrays, ClientFiles, HuggingFace, TorchDataset),
)
SOURCES: tuple[type[Source], ...] = (*IMAGES, Table, Text, Shakespeare, LinearRegression, Quadratic)

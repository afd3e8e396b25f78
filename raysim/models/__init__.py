"""All models, each in a file of its own. To add one, import it here and put it into `MODELS`."""

from raysim.models.cnn import CNN
from raysim.models.deq_mlp import DEQMLP
from raysim.models.deq_resnet import DEQResNet
from raysim.models.deq_transformer import DEQTransformer
from raysim.models.fedf_admm_cnn import FedFADMMCNN
from raysim.models.language_models import CausalLM, MaskedLM, SequenceClassifier
from raysim.models.linear import Linear
from raysim.models.lora import Lora
from raysim.models.mlp import MLP
from raysim.models.module import Module
from raysim.models.part import ModelPart
from raysim.models.resnet import ResNet
from raysim.models.solver import SOLVERS, Anderson, Broyden, Iteration, Solver
from raysim.models.text_model import TextModel
from raysim.models.timm_model import Timm
from raysim.models.torchvision_model import Torchvision
from raysim.models.transformer import Transformer
from raysim.models.vector import Vector

MODELS: tuple[type[ModelPart], ...] = (
    *(Vector, Linear, MLP, CNN, FedFADMMCNN, ResNet, Transformer),
    *(DEQMLP, DEQResNet, DEQTransformer, Torchvision, Timm, CausalLM, SequenceClassifier, MaskedLM, Module),
)

__all__ = [
    "CNN",
    "DEQMLP",
    "MLP",
    "MODELS",
    "SOLVERS",
    "Anderson",
    "Broyden",
    "CausalLM",
    "DEQResNet",
    "DEQTransformer",
    "FedFADMMCNN",
    "Iteration",
    "Linear",
    "Lora",
    "MaskedLM",
    "ModelPart",
    "Module",
    "ResNet",
    "SequenceClassifier",
    "Solver",
    "TextModel",
    "Timm",
    "Torchvision",
    "Transformer",
    "Vector",
]

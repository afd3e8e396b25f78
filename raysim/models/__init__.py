"""All models. To add one, import it here and put it into `MODELS`."""

from raysim.models.convolutional import CNN as CNN
from raysim.models.convolutional import FedFADMMCNN as FedFADMMCNN
from raysim.models.convolutional import ResNet as ResNet
from raysim.models.deq import DEQMLP as DEQMLP
from raysim.models.deq import DEQResNet as DEQResNet
from raysim.models.deq import DEQTransformer as DEQTransformer
from raysim.models.deq import TextModel as TextModel
from raysim.models.deq import Transformer as Transformer
from raysim.models.image_classifiers import Timm as Timm
from raysim.models.image_classifiers import Torchvision as Torchvision
from raysim.models.language_models import CausalLM as CausalLM
from raysim.models.language_models import SequenceClassifier as SequenceClassifier
from raysim.models.lora import Lora as Lora
from raysim.models.module import Module as Module
from raysim.models.part import MLP as MLP
from raysim.models.part import Linear as Linear
from raysim.models.part import ModelPart as ModelPart
from raysim.models.part import Vector as Vector
from raysim.models.solver import SOLVERS as SOLVERS
from raysim.models.solver import Anderson as Anderson
from raysim.models.solver import Broyden as Broyden
from raysim.models.solver import Iteration as Iteration
from raysim.models.solver import Solver as Solver

MODELS: tuple[type[ModelPart], ...] = (
    *(Vector, Linear, MLP, CNN, FedFADMMCNN, ResNet, Transformer),
    *(DEQMLP, DEQResNet, DEQTransformer, Torchvision, Timm, CausalLM, SequenceClassifier, Module),
)

"""All models. To add one, import it here and put it into `MODELS`."""

from raysim.models.cnn import CNN as CNN
from raysim.models.deq_mlp import DEQMLP as DEQMLP
from raysim.models.deq_resnet import DEQResNet as DEQResNet
from raysim.models.deq_transformer import DEQTransformer as DEQTransformer
from raysim.models.fedf_admm_cnn import FedFADMMCNN as FedFADMMCNN
from raysim.models.image_classifiers import Timm as Timm
from raysim.models.image_classifiers import Torchvision as Torchvision
from raysim.models.language_models import CausalLM as CausalLM
from raysim.models.language_models import MaskedLM as MaskedLM
from raysim.models.language_models import SequenceClassifier as SequenceClassifier
from raysim.models.linear import Linear as Linear
from raysim.models.lora import Lora as Lora
from raysim.models.mlp import MLP as MLP
from raysim.models.module import Module as Module
from raysim.models.part import ModelPart as ModelPart
from raysim.models.resnet import ResNet as ResNet
from raysim.models.solver import SOLVERS as SOLVERS
from raysim.models.solver import Anderson as Anderson
from raysim.models.solver import Broyden as Broyden
from raysim.models.solver import Iteration as Iteration
from raysim.models.solver import Solver as Solver
from raysim.models.text_model import TextModel as TextModel
from raysim.models.transformer import Transformer as Transformer
from raysim.models.vector import Vector as Vector

MODELS: tuple[type[ModelPart], ...] = (
    *(Vector, Linear, MLP, CNN, FedFADMMCNN, ResNet, Transformer),
    *(DEQMLP, DEQResNet, DEQTransformer, Torchvision, Timm, CausalLM, SequenceClassifier, MaskedLM, Module),
)

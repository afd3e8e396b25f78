"""What docstrings claim about papers and authors' code is held by a test of values that were worked out from these."""

import re
from pathlib import Path

import raysim.algorithms
from raysim.algorithms import ALGORITHMS

HERE, SOURCES = Path(__file__).parent, Path(raysim.algorithms.__file__).parent
CLAIM = re.compile(r"[Dd]ifferences from the paper: none|(?<!Where the )authors' code|authors do")
# For each file that claims to be as its paper or its authors' code has it, the tests that compare both.
HELD = {
    "apfl": ["test_mixtures::test_apfl_by_hand"],
    "ca2fl": ["test_ca2fl::test_two_buffers_by_hand", "test_ca2fl::test_many_steps_in_which_clients_come_twice"],
    "cmfd": ["test_distillation::test_cmfd_moves_towards_the_mean_of_the_others"],
    "d_psgd": ["test_peers::test_d_psgd_takes_the_gradient_before_mixing_and_decfedavg_the_mean_after_training"],
    "ditto": ["test_fedavg::test_ditto_pulls_towards_the_received_model"],
    "fadas": ["test_fadas::test_two_steps_of_one", "test_fadas::test_stale_steps_are_shorter"],
    "fedadagrad": ["test_server_rules::test_two_steps_along_one"],
    "fedadam": ["test_server_rules::test_two_steps_along_one"],
    "fedadmm_in": ["test_fedadmm::test_sigma_follows_the_penalty_and_the_convexity"],
    "fedadmm_insa": ["test_fedadmm::test_a_client_that_is_not_selected_counts_with_its_last_or_its_current_penalty"],
    "fedasync": ["test_fedbuff::test_fedasync_mixes_by_staleness"],
    "fedavg_ft": ["test_personal::test_fine_tuning_starts_from_the_global_model"],
    "fedavgm": ["test_server_rules::test_two_steps_along_one"],
    "fedbabu": ["test_baselines::test_the_head_of_fedbabu_stays_as_it_was_drawn"],
    "fedeq": ["test_fedeq::test_fedeq_by_hand", "test_fedeq::test_a_client_starts_at_theta_after_a_pause"],
    "fedf_admm": ["test_distillation::test_fedf_admm_makes_its_target_with_the_new_multiplier"],
    "fednova": ["test_baselines::test_fednova_by_hand", "test_baselines::test_fednova_counts_steps_with_momentum"],
    "fedper": ["test_fedper::test_head_and_body_together_or_in_turn"],
    "fedproto": ["test_representations::test_fedproto_draws_embeddings_to_prototypes"],
    "fedrep": ["test_fedper::test_head_and_body_together_or_in_turn"],
    "fedrolex": ["test_levels::test_windows_cover_all_parameters_alike"],
    "fedyogi": ["test_server_rules::test_a_second_step_of_yogi"],
    "flora": ["test_low_rank::test_flora_merges_the_products_of_new_adapters_into_the_base"],
    "inclusivefl": ["test_depths::test_the_last_layer_of_small_models_follows_those_above_it"],
    "heterofl": ["test_levels::test_labels_that_a_client_lacks_have_a_logit_of_zero"],
    "mifa": ["test_baselines::test_mifa_moves_on_in_rounds_without_arrivals"],
    "pfedme": ["test_baselines::test_pfedme_starts_at_the_received_model_or_at_its_own"],
    "port": ["test_mixtures::test_port_by_hand"],
    "sgp": ["test_push::test_sgp_steps_and_then_mixes"],
    "swift": ["test_peers::test_swift_sends_a_model_before_it_trains"],
    "scaffold": ["test_scaffold::test_scaffold_by_hand"],
}


def claiming() -> set[str]:
    """The names of algorithms whose file makes a claim."""
    names = {part.model_fields["name"].default for part in ALGORITHMS}
    files = {file.stem: " ".join(file.read_text(encoding="utf-8").split()) for file in SOURCES.glob("*.py")}
    return {name for name in names if CLAIM.search(files.get(name, ""))}


def test_every_claim_names_its_tests() -> None:
    assert claiming() <= HELD.keys()


def test_the_tests_are_there_and_about_it() -> None:
    for name, test in [(name, test) for name, tests in HELD.items() for test in tests]:
        file, _, function = test.partition("::")
        text = (HERE / f"{file}.py").read_text(encoding="utf-8")
        assert f"def {function}(" in text and name in text, test

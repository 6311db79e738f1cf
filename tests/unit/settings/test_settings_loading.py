"""One file below the environment below flags, and every mistake at once with its place."""

import pathlib

import pytest

from slurm_bridge import errors
from slurm_bridge.settings import keys, loader, profiles, sources
from slurm_bridge.settings.model import Settings

SMALLEST = "cluster_id: one\nslurm:\n  {url: http://rest:6820, plain_http: true,\n  token_file: /run/token}\n"


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    """A configuration that works."""
    path = tmp_path / "bridge.yaml"
    path.write_text(SMALLEST)
    return path


def load(path: pathlib.Path, *flags: str, **environ: str) -> Settings:
    """The file with flags and variables over it."""
    return loader.load(path, {f"SLURM_BRIDGE__{name}": text for name, text in environ.items()}, flags)


def problems(path: pathlib.Path, *flags: str, with_hooks: bool = False, **environ: str) -> list[str]:
    """What is said, without the name of the file."""
    variables = {f"SLURM_BRIDGE__{name}": text for name, text in environ.items()}
    with pytest.raises(errors.BadConfiguration) as caught:
        loader.load(path, variables, flags, with_hooks=with_hooks)
    _, *lines = str(caught.value).split("\n")
    return [line.strip().replace(f"{path}:", "line ") for line in lines]


def test_three_keys_are_enough(file: pathlib.Path) -> None:
    """Everything else has a default."""
    settings = load(file)
    assert (settings.slurm.url, settings.web.port) == ("http://rest:6820", 8080)
    assert [hook.name for hook in settings.hooks] == ["policy", "eligibility"]


def test_the_environment_wins_over_the_file(file: pathlib.Path) -> None:
    """Two underscores stand for the dot, and the other keys of the group stay."""
    settings = load(file, SLURM__URL="unix:///run/rest")
    assert (settings.slurm.url, str(settings.slurm.token_file)) == ("unix:///run/rest", "/run/token")


def test_flags_win_over_the_environment(file: pathlib.Path) -> None:
    """And the last flag over an earlier one."""
    assert load(file, "web.port=1", "web.port=2", WEB__PORT="3").web.port == 2


def test_a_group_that_is_given_empty_is_empty(file: pathlib.Path) -> None:
    """Nothing of a weaker source comes back into it; what is given beside it stays."""
    file.write_text(f"{SMALLEST}gres: {{x.io/nic: nic}}\n")
    assert load(file, "gres={}").gres == {}
    assert load(file, "gres={y.io/nic: other}").gres == {"x.io/nic": "nic", "y.io/nic": "other"}


def test_the_place_of_a_mistake_is_that_of_the_strongest_word(file: pathlib.Path) -> None:
    """A list that a flag replaced has no lines in the file any more."""
    file.write_text(f"{SMALLEST}hooks:\n- name: a\n- name: b\n")
    assert problems(file, "hooks=[{name: a}, {nam: b}]") == [
        "--set hooks: hooks[1].nam: no such key; did you mean name?",
        "--set hooks: hooks[1].name: is required",
    ]


def test_variables_with_one_underscore_are_not_ours(file: pathlib.Path) -> None:
    """Kubernetes sets some for a service named slurm-bridge."""
    assert loader.load(file, {"SLURM_BRIDGE_PORT": "tcp://10.0.0.1:80"}).web.port == 8080


def test_values_are_yaml(file: pathlib.Path) -> None:
    """So that null, numbers, lists and whole groups can be given."""
    settings = load(file, "slurm.job_ids=null", "scheduler_names=[a, b]", "gres={x.io/nic: nic}", LOG__JSON="yes")
    assert settings.slurm.job_ids is None
    assert settings.scheduler_names == ("a", "b")
    assert settings.gres == {"x.io/nic": "nic"}
    assert settings.log.as_json


def test_a_variable_keeps_the_letters_of_a_key_that_is_free(file: pathlib.Path) -> None:
    """Kinds of owners are keys that the configuration itself chooses."""
    rules = load(file, ENDS__AFTER_TIMEOUT__StatefulSet="hold").ends.after_timeout
    assert rules == {"default": "resubmit", "StatefulSet": "hold"}


def test_numbers_may_stand_where_names_are_meant(file: pathlib.Path) -> None:
    """A user id is a name, too, and one CPU need not be quoted."""
    settings = load(file, "defaults.user=5001", "defaults.cpus=2")
    assert (settings.defaults.user, settings.defaults.cpus) == ("5001", "2")


def test_every_problem_is_told_at_once(file: pathlib.Path) -> None:
    """File, variable and flag, each with its place."""
    file.write_text(SMALLEST + "web: {port: 99999}\nmirror:\n  sweep_seconds: often\n")
    assert sorted(problems(file, "status.patience_seconds=-1", "nonsense", LOG__VERBOSITY="11")) == [
        "--set nonsense: has to be key=value",
        "--set status.patience_seconds: should be greater than or equal to 0, not -1",
        "SLURM_BRIDGE__LOG__VERBOSITY: log.verbosity: should be less than or equal to 10, not 11",
        "line 5: web.port: should be less than or equal to 65535, not 99999",
        "line 7: mirror.sweep_seconds: should be a valid number, unable to parse string as a number, not 'often'",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("slrum: {}", "line 5: slrum: no such key; did you mean slurm?"),
        ("web: {prot: 1}", "line 5: web.prot: no such key; did you mean port?"),
        (
            "web:\n  zzz: 1",
            (
                "line 6: web.zzz: no such key; there are administration, host, live_view, port, probes_port, "
                "submission, tls"
            ),
        ),
        ("hooks:\n- name: a\n- nam: b", "line 7: hooks[1].name: is required"),
        ("web: 3", "line 5: web: should be a valid mapping, not 3"),
        ("hooks: {}", "line 5: hooks: should be a valid list"),
        ("web:\n  port: 1\n  port: 2", "line 7: port: occurs twice"),
        ("web: {", "line 6: is not YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_a_mistake_in_the_file_has_its_line(file: pathlib.Path, more: str, said: str) -> None:
    """Of the key, or of the item that should have had it."""
    file.write_text(f"{SMALLEST}{more}\n")
    assert said in problems(file)


_POLICY = "hooks:\n- name: vela\n- name: policy\n  options:\n    "


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "hooks:\n- name: polcy",
            (
                "line 6: hooks[0].name: polcy is not built in, and no installed package has this entry point in "
                "slurm_bridge.hooks; did you mean policy?"
            ),
        ),
        ("hooks:\n- name: vela\n- name: vela", "line 7: hooks[1].name: vela is configured twice; leave one out"),
        (
            "hooks:\n- name: eligibility\n  options: {capcity: free}",
            "line 7: hooks[0].options.capcity: no such key; did you mean capacity?",
        ),
        (
            "hooks:\n- name: vela\n  options:\n    sampling:\n      filters: [{name: ResourcesFit, args: {x: 1}}]",
            "line 9: hooks[0].options.sampling.filters[0].args.x: no such key",
        ),
        (f"{_POLICY}rules: text", "line 9: hooks[1].options.rules: should be a valid list"),
        (
            f"{_POLICY}rules:\n    - alow: {{}}",
            "line 10: hooks[1].options.rules[0].alow: no such key; did you mean allow?",
        ),
        (
            f"{_POLICY}rules:\n    - allow: {{acount: [a]}}",
            "line 10: hooks[1].options.rules[0].allow.acount: no such key; did you mean account?",
        ),
        (
            f"{_POLICY}rules:\n    - allow:\n        qos: 7",
            "line 11: hooks[1].options.rules[0].allow.qos: should be a valid mapping, or should be a valid list",
        ),
        (
            f"{_POLICY}rules:\n    - allow:\n        priority: {{max: 0}}",
            "line 11: hooks[1].options.rules[0].allow.priority.max: should be greater than or equal to 1",
        ),
        (
            "hooks:\n- name: kai\n  options:\n    topologies:\n    - {name: a, levels: [x]}\n    - {levels: [x]}",
            "line 10: hooks[0].options.topologies[1].name: is required",
        ),
    ],
)
def test_a_mistake_in_a_hook_has_the_line_of_its_key(file: pathlib.Path, more: str, said: str) -> None:
    """In the words for all other keys, and only where the chain is to be built."""
    file.write_text(f"{SMALLEST}{more}\n")
    assert problems(file, with_hooks=True) == [said]
    assert load(file).hooks


def test_mistakes_of_hooks_are_told_with_those_of_other_keys(file: pathlib.Path) -> None:
    """One round of corrections has to do; a hook without a name is a mistake by itself."""
    file.write_text(f"{SMALLEST}slrum: {{}}\nhooks:\n- name: policy\n  options: {{rule: []}}\n- nam: kai\n")
    assert problems(file, with_hooks=True) == [
        "line 5: slrum: no such key; did you mean slurm?",
        "line 8: hooks[0].options.rule: no such key; did you mean rules?",
        "line 9: hooks[1].nam: no such key; did you mean name?",
        "line 9: hooks[1].name: is required",
    ]


def test_hooks_that_a_flag_gives_are_judged_in_place_of_those_of_the_file(file: pathlib.Path) -> None:
    """The place is the flag."""
    file.write_text(f"{SMALLEST}hooks: [{{name: nobody}}]\n")
    assert problems(file, "hooks=[{name: policy, options: {rule: []}}]", with_hooks=True) == [
        "--set hooks: hooks[0].options.rule: no such key; did you mean rules?"
    ]


def test_no_message_repeats_a_value_of_the_options_of_a_hook(file: pathlib.Path) -> None:
    """A token may have been written there by mistake."""
    file.write_text(f"{SMALLEST}hooks:\n- name: eligibility\n  options: {{volumes: eyJsecret, devices: eyJsecret}}\n")
    assert len(found := problems(file, with_hooks=True)) == 2
    assert "eyJsecret" not in "".join(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("web: {", "line 2: is not YAML: expected the node content, but found '<stream end>'"),
        ("- a", "line 1: has to hold keys and values"),
    ],
)
def test_of_a_file_that_cannot_be_read_only_the_cause_is_told(file: pathlib.Path, text: str, said: str) -> None:
    """Which keys it lacks is not known."""
    file.write_text(f"{text}\n")
    assert problems(file, with_hooks=True) == [said]


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (
            "cluster_id=Big_One",
            "has to be at most 63 lower case letters, digits and dashes, as a DNS label, not 'Big_One'",
        ),
        (
            "scheduler_names=[default-scheduler]",
            "belongs to the cluster's own scheduler: both would bind the same pods",
        ),
        ("scheduler_names=[]", "has to name at least one"),
        ("scheduler_names=[a, a]", "names a more than once"),
        ("slurm.job_ids={first: 9, last: 9}", "has to be larger than first (9), not 9"),
        ("slurm.job_ids.last=67108864", "should be less than or equal to 67108863, not 67108864"),
        ("slurm.api_versions=[v0.0.40]", "is none of v0.0.45, v0.0.44, v0.0.43, not 'v0.0.40'"),
        ("slurm.key=/key", "needs cert beside it, not '/key'"),
        ("mirror.fastest_seconds=7", "has to be larger than fastest_seconds (7), not 5.0"),
        ("leader_election.renew_seconds=15", "has to be smaller than lease_seconds (15), not 15"),
        ("defaults.user=root", "placeholders belong to ordinary users and groups, never to root, 0 or 99, not 'root'"),
        ("defaults.user=0", "placeholders belong to ordinary users and groups, never to root, 0 or 99, not 0"),
        ("defaults.cpus=0", "has to be greater than 0, not 0"),
        ("defaults.memory=5Xi", "has to be a Kubernetes quantity, for example 500m, 2 or 1.5Gi, not '5Xi'"),
        ("defaults.partition=a b", "has to be a name, or several with commas and without blanks, not 'a b'"),
        ("defaults.partition=on", "has to be a text, not True; put the word in quotes"),
        ("defaults.partition=[a]", "has to be a text"),
        ("kubernetes.kubeconfig=' '", "names no file"),
        ("defaults.exclusive=perhaps", "unable to interpret input"),
        ("mirror.fastest_seconds=.inf", "should be a finite number"),
        ("ends.after_timeout={Job: explode}", "should be 'resubmit' or 'hold', not 'explode'"),
        ("hooks.0.name=a", "should be a valid list"),
        ("web.port=[", "its value is not YAML; put quotes around special characters"),
        ("=3", "names no key"),
    ],
)
def test_what_cannot_work_is_refused_with_what_can(file: pathlib.Path, flag: str, said: str) -> None:
    """Key, rule and value in one line."""
    (line,) = problems(file, flag)
    assert said in line


def test_a_rule_between_two_keys_holds_although_a_third_is_wrong(file: pathlib.Path) -> None:
    """One round of corrections has to do."""
    assert len(problems(file, "mirror.fastest_seconds=9", "mirror.sweep_seconds=no")) == 2


@pytest.mark.security("rights")
@pytest.mark.parametrize("url", ["http://rest:6820", "http://10.0.0.7:6820", "http://127.0.0.1.example.com"])
def test_the_token_goes_nowhere_in_the_clear_unless_it_may(file: pathlib.Path, url: str) -> None:
    """The operator's token travels over plain http to another machine only where slurm.plain_http says so."""
    (line,) = problems(file, f"slurm.url={url}", "slurm.plain_http=false")
    assert "slurm.plain_http: has to be true where slurm.url is http:// to another machine" in line
    assert "https://" in line
    assert load(file, f"slurm.url={url}", "slurm.plain_http=true").slurm.plain_http


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:6820", "http://localhost", "http://[::1]:1", "unix:///run/rest", "https://rest"]
)
def test_encrypted_and_local_addresses_need_no_word(file: pathlib.Path, url: str) -> None:
    """Nobody else reads what is sent there."""
    assert not load(file, f"slurm.url={url}", "slurm.plain_http=false").slurm.plain_http


@pytest.mark.parametrize(
    "flag",
    [
        "slurm.token_file=SLURM_JWT=eyJsecret",
        "slurm.token_file=eyJsecret",
        "slurm.token=eyJsecret",
        "slurm.url=http://me:eyJsecret@host",
        "slurm.url=eyJsecret://host",
    ],
)
def test_t66_no_message_repeats_a_token(file: pathlib.Path, flag: str) -> None:
    """Not even where somebody wrote one in the wrong place."""
    with pytest.raises(errors.BadConfiguration) as caught:
        load(file, flag)
    assert "eyJsecret" not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.__context__!r}".replace(
        f"--set {flag}", ""
    )


def test_a_file_that_cannot_be_read_says_why(tmp_path: pathlib.Path) -> None:
    """The operating system's words."""
    with pytest.raises(errors.BadConfiguration, match=r"nowhere.yaml cannot be read: No such file"):
        load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_lacks_what_is_required(file: pathlib.Path, text: str) -> None:
    """And is otherwise no mistake."""
    file.write_text(text)
    assert problems(file) == ["line  cluster_id: is required", "line  slurm: is required"]


def test_a_file_with_control_characters_is_no_yaml(file: pathlib.Path) -> None:
    """The parser knows no line for them."""
    file.write_text("a: \x00")
    assert "line  is not YAML: ReaderError" in problems(file)


def test_a_file_that_is_a_list_is_none(file: pathlib.Path) -> None:
    """Keys and values are expected."""
    file.write_text("- a\n")
    assert "line 1: has to hold keys and values" in problems(file)


def test_the_fingerprint_follows_the_content_through_links(tmp_path: pathlib.Path) -> None:
    """A mounted ConfigMap is exchanged by moving a link: time and name of the file stay."""
    for number in (1, 2):
        (tmp_path / f"data{number}").mkdir()
        (tmp_path / f"data{number}" / "bridge.yaml").write_text(f"web: {{port: {number}}}")
    link = tmp_path / "now"
    link.symlink_to("data1")
    before = sources.fingerprint(link / "bridge.yaml")
    link.unlink()
    link.symlink_to("data2")
    assert sources.fingerprint(link / "bridge.yaml") != before
    assert sources.fingerprint(tmp_path / "data1" / "bridge.yaml") == before


def test_a_fingerprint_of_nothing_is_an_error(tmp_path: pathlib.Path) -> None:
    """Whoever watches keeps the last good configuration."""
    with pytest.raises(errors.BadConfiguration, match="cannot be read"):
        sources.fingerprint(tmp_path / "gone")


def test_a_profile_sets_defaults_that_every_source_overrides(file: pathlib.Path) -> None:
    """`slinky` behaves as SchedMD's bridge; a key of the file, a variable or a flag wins over it."""
    file.write_text(f"{SMALLEST}profile: slinky\ndefaults: {{partition: gpu}}\n")
    settings = load(file)
    assert (settings.defaults.exclusive, settings.defaults.count) == (True, "limits")
    assert (settings.defaults.partition, settings.defaults.mcs_label) == ("gpu", "kubernetes")
    assert (settings.workloads.jobset, settings.hybrid_devices) == ("pod", "whole-node")
    changed = load(file, "defaults.count=requests", "workloads.jobset=gang", DEFAULTS__EXCLUSIVE="false")
    assert (changed.defaults.exclusive, changed.defaults.count) == (False, "requests")
    assert changed.workloads.jobset == "gang"


def test_without_a_profile_nothing_changes(file: pathlib.Path) -> None:
    """And a flag may choose one, or take it back."""
    assert load(file) == load(file, "profile=null")
    assert load(file, "profile=slinky").defaults.exclusive
    file.write_text(f"{SMALLEST}profile: slinky\n")
    assert not load(file, "profile=null").defaults.exclusive


@pytest.mark.parametrize("word", ["other", "[slinky]", "7"])
def test_an_unknown_profile_is_refused(file: pathlib.Path, word: str) -> None:
    """With the name of the key."""
    (problem,) = problems(file, f"profile={word}")
    assert problem.startswith("--set profile: should be 'slinky'")


def test_the_keys_of_profiles_exist() -> None:
    """Each with a value of its type."""
    known = {one.name for one in keys.every()}
    assert {key for values in profiles.PROFILES.values() for key in values} <= known


def test_the_manifest_of_a_config_map_is_read_with_the_lines_of_its_file(tmp_path: pathlib.Path) -> None:
    """What deploy/ has can be checked before it is applied."""
    path = tmp_path / "configmap.yaml"
    head = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  config.yaml: |\n"
    inside = "    cluster_id: east\n    slurm: {url: 'http://127.0.0.1', token_file: /t}\n"
    path.write_text(head + inside)
    assert loader.load(path, {}).cluster_id == "east"
    path.write_text(head + inside + "    hoks: []\n")
    with pytest.raises(errors.BadConfiguration, match=r"configmap\.yaml:7: hoks: no such key"):
        loader.load(path, {})


_MAP = (
    "kind: ConfigMap\ndata:\n  config.yaml: |\n"
    "    cluster_id: east\n    slurm: {url: 'http://127.0.0.1', token_file: /t}\n"
)
_OTHER = "kind: ConfigMap\ndata: {other.yaml: a}\n"


def test_of_several_documents_the_one_config_map_with_a_configuration_is_read(file: pathlib.Path) -> None:
    """As `kubectl kustomize` prints them; lines are those of the whole file."""
    file.write_text(f"---\n{_OTHER}---\n{_MAP}---\n")
    assert load(file).cluster_id == "east"
    file.write_text(f"---\n{_OTHER}---\n{_MAP}    hoks: []\n---\n")
    assert problems(file) == ["line 10: hoks: no such key; did you mean hooks?"]


@pytest.mark.parametrize("second", [_MAP, SMALLEST])
def test_of_several_documents_that_could_be_meant_none_is_read(second: str, file: pathlib.Path) -> None:
    """One message says what to give."""
    file.write_text(f"{second}---\n{second}")
    (problem,) = problems(file)
    assert problem.startswith(
        "line 1: is the first of 2 YAML documents: give the settings alone, or exactly one Config"
    )


@pytest.mark.parametrize("data", ["[]", "{config.yaml: 5}", "{config.yaml: [a]}", "{}", "{config.yaml: '- a'}"])
def test_a_config_map_without_a_configuration_is_an_error_like_any_other(data: str, tmp_path: pathlib.Path) -> None:
    """And no stack trace."""
    path = tmp_path / "configmap.yaml"
    path.write_text(f"kind: ConfigMap\ndata: {data}\n")
    with pytest.raises(errors.BadConfiguration):
        loader.load(path, {})

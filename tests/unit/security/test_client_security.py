"""From Kafka's own properties to what librdkafka's clients and Spark's are told."""

import pytest
from certificates import Authority
from messages import refused

from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.security.client_security import ClientSecurity, login_module

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
SECRET = "correct-horse"


@pytest.fixture(scope="module")
def authority():
    return Authority("tests")


@pytest.fixture
def read(tmp_path):
    def of(text, **environment):
        path = tmp_path / "client.properties"
        path.write_text(text)
        return ClientSecurity.read(path, environment)

    return of


@pytest.fixture
def read_with_jaas(tmp_path):
    """Reads properties, and a JAAS file with this text."""

    def of(text, jaas, mechanism="GSSAPI"):
        path, file = tmp_path / "client.properties", tmp_path / "client jaas.conf"
        path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.kerberos.service.name=kafka\n{text}")
        if jaas is not None:
            file.write_text(jaas)
        return ClientSecurity.read(path, {}, f"-Da=b '-Djava.security.auth.login.config={file}'")

    return of


def is_refused(read, text, *facts, **environment):
    with refused("client.properties: ", *facts) as raised:
        read(text, **environment)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)])
def test_user_and_password_of_a_login_module(read, tmp_path, mechanism, module):
    found = read(
        f'security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={module} required username="app" password="{SECRET}";'
    )
    told = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "app", "sasl.password": SECRET}
    assert (dict(found.librdkafka), found.user) == (told, "app")
    assert dict(found.spark)["kafka.sasl.jaas.config"] == f"${{file:{tmp_path}/client.properties:sasl.jaas.config}}"


@pytest.mark.parametrize("folder", ["a:b", "a}"])
def test_a_path_that_no_reference_can_have_is_refused(tmp_path, folder):
    path = tmp_path / folder / "client.properties"
    path.parent.mkdir()
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=app\nsasl.password={SECRET}")
    with refused(f"{path}: ", "sasl.password", "colon"):
        ClientSecurity.read(path, {})


def test_user_and_password_by_themselves_become_a_login_module_for_spark(read, tmp_path):
    found = read(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=app\nsasl.password={SECRET}")
    assert dict(found.librdkafka)["sasl.password"] == SECRET
    spark = dict(found.spark)
    assert (
        spark["kafka.sasl.jaas.config"]
        == f'{SCRAM} required username="app" password="${{file:{tmp_path}/client.properties:sasl.password}}";'
    )
    assert "kafka.sasl.password" not in spark


def test_a_reference_goes_to_spark_as_it_is(read):
    jaas = f'{SCRAM} required username="app" password="${{env:KAFKA_PASSWORD}}";'
    found = read(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={jaas}", KAFKA_PASSWORD=SECRET)
    spark = dict(found.spark)
    assert (dict(found.librdkafka)["sasl.password"], spark["kafka.sasl.jaas.config"]) == (SECRET, jaas)
    assert spark["kafka.config.providers"] == "env,file,directory,dir"
    assert spark["kafka.config.providers.env.class"] == "org.apache.kafka.common.config.provider.EnvVarConfigProvider"


def test_no_secret_is_in_what_spark_is_told_nor_in_any_text(read, authority, tmp_path):
    ca, own = authority.pkcs12(tmp_path / "ca.p12", SECRET), authority.issue("app").pkcs12(tmp_path / "own.p12", SECRET)
    found = read(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=app\nsasl.password={SECRET}\n"
        f"ssl.truststore.type=PKCS12\nssl.truststore.location={ca}\nssl.truststore.password={SECRET}\n"
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={own}\nssl.keystore.password={SECRET}\nssl.key.password={SECRET}"
    )
    kafka = KafkaCluster("broker:9093", found)
    assert SECRET in str(found.librdkafka)
    assert SECRET not in f"{kafka} {kafka!r} {found!r} {found.tls!r} {kafka.spark_options()}"


def test_pem_for_both_kinds_of_clients(read, authority, tmp_path):
    ca, own = authority.pem(tmp_path / "ca.pem"), authority.issue("app").pem(tmp_path / "own.pem", SECRET)
    found = read(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={own}\nssl.key.password={SECRET}\nssl.endpoint.identification.algorithm="
    )
    told = dict(found.librdkafka)
    assert told.pop("ssl.ca.pem") == ca.read_text()
    expected = {"security.protocol": "SSL", "ssl.certificate.location": str(own), "ssl.key.location": str(own), "ssl.key.password": SECRET}
    assert told == expected | {"ssl.endpoint.identification.algorithm": "none"}
    spark = dict(found.spark)
    assert (spark["kafka.ssl.truststore.location"], spark["kafka.ssl.keystore.type"]) == (str(ca), "PEM")
    assert spark["kafka.ssl.key.password"] == f"${{file:{tmp_path}/client.properties:ssl.key.password}}"
    assert KafkaCluster("127.0.0.1:1", found).producer({}) is not None


def test_pkcs12_is_made_readable_for_librdkafka(read, authority, tmp_path):
    ca, own = authority.pkcs12(tmp_path / "ca.p12", SECRET), authority.issue("app").pkcs12(tmp_path / "own.p12", SECRET)
    found = read(
        f"security.protocol=SSL\nssl.truststore.type=PKCS12\nssl.truststore.location={ca}\nssl.truststore.password={SECRET}\n"
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={own}\nssl.keystore.password={SECRET}"
    )
    told = dict(found.librdkafka)
    assert told["ssl.ca.pem"] == authority.pem(tmp_path / "ca.pem").read_text()
    assert (told["ssl.keystore.location"], told["ssl.keystore.password"]) == (str(own), SECRET)
    assert KafkaCluster("127.0.0.1:1", found).admin() is not None


def test_kerberos_from_a_keytab(read):
    jaas = f'{KERBEROS} required useKeyTab=true storeKey=true keyTab="/etc/app.keytab" principal="app@EXAMPLE.ORG";'
    found = read(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={jaas}")
    told = dict(found.librdkafka)
    assert (told["sasl.kerberos.keytab"], told["sasl.kerberos.principal"]) == ("/etc/app.keytab", "app@EXAMPLE.ORG")


TICKET = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"


@pytest.mark.parametrize(
    "more", ["", "// KafkaClient { none };\n", "/* KafkaClient\n{ } */", f"Client {{ {KERBEROS} required\n useTicketCache=true; }};\n"]
)
def test_a_jaas_file_has_the_login_module_of_java_and_librdkafka_gets_the_same(read_with_jaas, more):
    entry = (
        f'{KERBEROS} required // by keytab\n useKeyTab=true\n storeKey=true keyTab="/etc/{{app}}//of.keytab"\n principal="app@EXAMPLE.ORG";'
    )
    found = read_with_jaas("", f"{more}KafkaClient {{\n{entry}\n}};\n")
    told = dict(found.librdkafka)
    assert (told["sasl.kerberos.keytab"], told["sasl.kerberos.principal"]) == ("/etc/{app}//of.keytab", "app@EXAMPLE.ORG")
    assert "kafka.sasl.jaas.config" not in dict(found.spark), "Java's clients would not look into the file"


def test_a_password_in_a_jaas_file_is_no_option_of_spark(read_with_jaas):
    found = read_with_jaas("", f'KafkaClient {{ {SCRAM} required username="app" password="{SECRET}"; }};', "SCRAM-SHA-512")
    assert dict(found.librdkafka)["sasl.password"] == SECRET
    assert SECRET not in str(found.spark)


def test_what_the_properties_say_goes_before_a_jaas_file(read_with_jaas):
    found = read_with_jaas(f"sasl.username=app\nsasl.password={SECRET}", "KafkaClient { broken", "SCRAM-SHA-512")
    assert dict(found.spark)["kafka.sasl.jaas.config"].startswith(SCRAM)


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        (None, "client jaas.conf cannot be read (No such file"),
        (f'MyKafkaClient {{ {SCRAM} required password="{SECRET}"; }};', "has no section KafkaClient"),
        (f'KafkaClient {{ {KERBEROS} required password="{SECRET}"; }};', "GSSAPI requires"),
    ],
)
def test_a_jaas_file_that_does_not_fit_is_named_without_what_it_holds(read_with_jaas, jaas, expected):
    with refused(expected) as raised:
        read_with_jaas("", jaas)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("jaas", ["", f"sasl.jaas.config={KERBEROS} required useTicketCache=true;"])
def test_kerberos_without_a_keytab_takes_the_ticket_of_kinit(read, tmp_path, jaas):
    tickets = tmp_path / "krb5cc"
    tickets.touch()
    found = read(f"{TICKET}{jaas}", KRB5CCNAME=f"FILE:{tickets}", PATH=str(tmp_path / "no klist"))
    service = {"sasl.kerberos.service.name": "kafka", "sasl.kerberos.min.time.before.relogin": "0"}
    assert dict(found.librdkafka) == {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", **service}
    by_ticket, as_written = (
        f"{KERBEROS} required useTicketCache=true doNotPrompt=true;",
        f"${{file:{tmp_path}/client.properties:sasl.jaas.config}}",
    )
    assert dict(found.spark)["kafka.sasl.jaas.config"] == (as_written if jaas else by_ticket)


def test_one_clear_line_for_a_ticket_that_not_every_client_finds(read, tmp_path):
    with refused(f"no Kerberos ticket in {tmp_path}/none", "kinit"):
        read(TICKET, KRB5CCNAME=f"{tmp_path}/none")
    with refused("KRB5CCNAME is KCM:", "FILE:/path", "kinit"):
        read(TICKET, KRB5CCNAME="KCM:")
    elsewhere = f'{TICKET}sasl.jaas.config={KERBEROS} required useTicketCache=true ticketCache="/elsewhere";'
    is_refused(read, elsewhere, "GSSAPI", "KRB5CCNAME")


def test_one_clear_line_for_what_cannot_be_followed(read):
    scram = "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
    is_refused(read, "acks=all", "acks", "sasl.jaas.config, ")
    is_refused(read, "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "sasl.mechanism is OAUTHBEARER", "PLAIN, ")
    is_refused(read, scram, "sasl.jaas.config", "sasl.username", "sasl.password")
    is_refused(read, f'{scram}sasl.username=a\nsasl.password={SECRET}\\"', "sasl.username", "sasl.password", '"')
    is_refused(
        read, f'{scram}sasl.jaas.config={PLAIN} required username="a" password="{SECRET}";', "sasl.jaas.config", "SCRAM-SHA-512", SCRAM
    )
    is_refused(read, "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", "GSSAPI", "sasl.kerberos.service.name")
    mixed = f'{scram}sasl.jaas.config={SCRAM} required username="${{env:A}}" password="{SECRET}";'
    is_refused(read, mixed, "sasl.jaas.config", "password", A="a")


def test_one_clear_line_for_stores_that_cannot_be_read(read, authority, tmp_path):
    ca, own = authority.pem(tmp_path / "ca.pem"), authority.issue("app").pem(tmp_path / "own.pem", SECRET)
    truststore = f"security.protocol=SSL\nssl.truststore.location={ca}\n"
    is_refused(read, truststore, "ssl.truststore.type is JKS", "PEM or PKCS12", "keytool")
    is_refused(read, f"{truststore}ssl.truststore.type=PKCS12", str(ca), "PKCS12", "ssl.truststore.password")
    nothing = "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/none"
    is_refused(read, nothing, "ssl.truststore.location=/none", "PEM")
    keystore = f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={own}\nssl.key.password=other"
    is_refused(read, keystore, f"ssl.keystore.location={own}", "PEM")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} required username='a' password=b ;", {"username": "a", "password": "b"}),
        (f'{PLAIN} required password="q\\"uo\\\\te" username="a b";', {"username": "a b", "password": 'q"uo\\te'}),
    ],
)
def test_login_modules_as_java_reads_them(text, options):
    module = login_module(text)
    assert (module.name, module.options) == ("PlainLoginModule", options)


@pytest.mark.parametrize(
    "text", ["", "username=a", f"{PLAIN} username=a;", f"{PLAIN} required username=a", f'{PLAIN} required username="a;']
)
def test_what_is_no_login_module(text):
    assert login_module(text) is None

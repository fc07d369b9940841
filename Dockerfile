# The programs of this project in one image: producers, pipeline, dashboard, a Spark master and workers, and every command.
# Needs BuildKit, which Docker has as a default since version 23. Build arguments for networks of one's own:
# PIP_INDEX_URL and UV_DEFAULT_INDEX (Python packages), STREAMGAUGE_MAVEN_URL (jars), HTTP_PROXY and HTTPS_PROXY.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
ARG PIP_INDEX_URL
ARG UV_DEFAULT_INDEX
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore uv==0.13.8
WORKDIR /build
COPY pyproject.toml uv.lock ./
# By way of requirements: the lock's hashes, from whichever index is given.
RUN --mount=type=cache,target=/root/.cache/uv \
    uv export --frozen --quiet --no-dev --extra postgres --extra s3 --no-emit-project --output-file requirements.txt \
    && uv venv --quiet --python /usr/local/bin/python3 /opt/streamgauge/venv \
    && UV_LINK_MODE=copy uv pip install --quiet --require-hashes --compile-bytecode \
       --python /opt/streamgauge/venv/bin/python --requirements requirements.txt

FROM packages AS jars
ARG STREAMGAUGE_MAVEN_URL
COPY . .
# What was fetched is kept between builds: a change of the code fetches nothing anew. Kafka and the registry have images of their own, so their
# classes are not saved.
RUN --mount=type=cache,target=/fetched \
    mkdir /opt/streamgauge/cache && cp -r /fetched/. /opt/streamgauge/cache/ \
    && PYTHONPATH=/build KAFKA_BOOTSTRAP_SERVERS=kafka:9092 SCHEMA_REGISTRY_URL=http://registry:8080 STREAMGAUGE_CACHE=/opt/streamgauge/cache \
       /opt/streamgauge/venv/bin/python -m streamgauge.cli fetch \
    && cp -r /opt/streamgauge/cache/maven /opt/streamgauge/cache/unpacked /fetched/ \
    && rm -r /opt/streamgauge/cache/maven/io/apicurio \
    && chmod -R a+rX /opt/streamgauge/cache

FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --user-group --create-home streamgauge \
    && install --directory --owner streamgauge --group streamgauge /var/lib/streamgauge \
    && printf '#!/bin/sh\nexec python -m streamgauge.cli "$@"\n' > /usr/local/bin/streamgauge \
    && chmod 755 /usr/local/bin/streamgauge
COPY --from=packages /opt/streamgauge/venv /opt/streamgauge/venv
COPY --from=jars /opt/streamgauge/cache /opt/streamgauge/cache
COPY . /opt/streamgauge/app
RUN python3 -m compileall -q /opt/streamgauge/app
ENV PATH=/opt/streamgauge/venv/bin:$PATH \
    PYTHONPATH=/opt/streamgauge/app \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    STREAMGAUGE_CACHE=/opt/streamgauge/cache \
    STREAMGAUGE_HOME=/var/lib/streamgauge
USER streamgauge
WORKDIR /home/streamgauge
ENTRYPOINT ["streamgauge"]
CMD ["--help"]

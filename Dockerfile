# kernelviz with the compilers that its variants need. docs/deploy.md says how to run it, and what must not be exposed.
#   docker build -t kernelviz .                                                            with CUDA's wheels
#   docker build -t kernelviz:cpu --build-arg TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu .
# The base can be any image of Debian, or of a distribution based on it, with Python 3.11 or newer.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS system
# g++ is for torch.compile and the C++ variants, gcc and Python.h for the launchers that Triton builds. tini is process 1, so that
# a stop signal reaches the server, and compilers whose parent has ended are reaped. CUDA's libraries and headers are wheels.
# Python's own images have the headers and ensurepip. Debian has both in separate packages.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc g++ tini \
    && { python3 -c "import ensurepip, os, sysconfig; os.stat(sysconfig.get_paths()['include'] + '/Python.h')" 2>/dev/null \
         || DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-dev python3-venv; } \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
ENV PATH=/opt/kernelviz/bin:${PATH} \
    PYTHONUNBUFFERED=1
COPY requirements-dev.txt /tmp/
# `--secret id=pip,src=pip.conf` passes settings of pip (a mirror, a proxy) to the build without storing them in the image.
RUN --mount=type=secret,id=pip export PIP_CONFIG_FILE=/run/secrets/pip \
    && python3 -m venv /opt/kernelviz \
    && pip install --no-cache-dir "$(grep '^pip==' /tmp/requirements-dev.txt)" \
    && rm /tmp/requirements-dev.txt

# The package is built in a stage of its own, so that neither its sources nor the build tools are in the image.
FROM system AS wheel
WORKDIR /src
COPY requirements-dev.txt ./
RUN --mount=type=secret,id=pip export PIP_CONFIG_FILE=/run/secrets/pip \
    && pip install --no-cache-dir "$(grep '^hatchling==' requirements-dev.txt)"
COPY pyproject.toml README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY kernelviz kernelviz
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .

FROM system
COPY requirements.txt /tmp/
# The dependencies are a layer before the code. If TORCH_INDEX_URL is empty, torch comes from PyPI, which has the CUDA build for Linux.
ARG TORCH_INDEX_URL=
RUN --mount=type=secret,id=pip export PIP_CONFIG_FILE=/run/secrets/pip \
    && if [ -n "${TORCH_INDEX_URL}" ]; then \
         pip install --no-cache-dir --index-url "${TORCH_INDEX_URL}" "$(grep '^torch==' /tmp/requirements.txt)"; fi \
    && grep -v '^-e ' /tmp/requirements.txt >/tmp/pins.txt \
    && pip install --no-cache-dir --requirement /tmp/pins.txt \
    && rm /tmp/requirements.txt /tmp/pins.txt

# The uid is fixed, so that volumes stay readable for later images.
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin kernelviz \
    && install -d -o kernelviz -g kernelviz /var/lib/kernelviz /var/cache/kernelviz \
    && install -d -m 1777 /run/lock/kernelviz
# NVIDIA_DRIVER_CAPABILITIES: the parts of the driver that NVIDIA's container toolkit mounts, here libcuda and NVML.
ENV KERNELVIZ_HOME=/var/lib/kernelviz \
    KERNELVIZ_CACHE=/var/cache/kernelviz \
    KERNELVIZ_RUNTIME_DIR=/run/lock/kernelviz \
    TRITON_CACHE_DIR=/var/cache/kernelviz/triton \
    TORCHINDUCTOR_CACHE_DIR=/var/cache/kernelviz/inductor \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    pip install --no-cache-dir --no-deps --no-index /wheel/kernelviz-*.whl

USER kernelviz
WORKDIR /home/kernelviz
VOLUME ["/var/lib/kernelviz", "/var/cache/kernelviz"]
EXPOSE 8501
# Without site-packages the check takes about 50 ms. It uses http.client, because urllib would use a proxy from the environment.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-S", "-c", "import http.client, os; at = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); c = http.client.HTTPConnection('127.0.0.1', 8501, timeout=5); c.request('GET', (at and '/' + at) + '/api/health'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--"]
CMD ["kernelviz", "serve", "--host", "0.0.0.0", "--port", "8501"]

# SPDX-License-Identifier: Apache-2.0
# docker build -t twinstep . && docker run --rm -v "$PWD:/data" twinstep demo
FROM debian:12 AS build
COPY . /twinstep
RUN sh /twinstep/bootstrap.sh package
FROM debian:12
COPY --from=build /twinstep/build/default/twinstep_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/twinstep_*.deb && rm -rf /tmp/twinstep_*.deb /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["twinstep"]
CMD ["--help"]

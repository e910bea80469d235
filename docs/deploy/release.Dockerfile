# The image of a release: .goreleaser.yaml builds it around programs that are built already. The image of a checkout is made
# by Dockerfile.

FROM debian:stable-slim AS certificates
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates

FROM scratch
ARG TARGETPLATFORM
COPY --from=certificates /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY LICENSE THIRD_PARTY_NOTICES /usr/share/doc/escapement/
COPY $TARGETPLATFORM/escapement /usr/local/bin/escapement
ENV PATH=/usr/local/bin
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["escapement", "health", "--config", "/etc/escapement/config.yaml"]
ENTRYPOINT ["escapement"]
CMD ["run", "--config", "/etc/escapement/config.yaml"]

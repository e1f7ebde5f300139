# One image for the API, the workers, the migration and the commands: `docker run quillgate api`, `… worker`, `… migrate`.
# One image, so that API and workers of one release cannot differ; no `# syntax` line, so that any engine builds it.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
# What only a checkout runs (npm start) stays behind; the simulator goes along.
RUN node dev/build.mjs && rm dist/programs/start.js

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The optional packages are PostgreSQL and Node for machines that have none. Type declarations and source maps are half of
# the rest, and nothing reads them here; nor OpenTelemetry's SDK, which is in the programs, with a list of names of 3 MB beside it.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
  && find node_modules/@opentelemetry -mindepth 1 -maxdepth 1 ! -name api -exec rm -r {} + \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="quillgate" \
  org.opencontainers.image.description="A chat gateway and blogging service" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production PATH=/app/bin:$PATH
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY bin bin
COPY --from=build /app/dist/.inputs.sha256 dist/
COPY --from=build /app/dist/programs dist/programs
COPY --from=build /app/dist/console dist/console
COPY --from=build /app/dist/db/migrations dist/db/migrations
# By number: a cluster that refuses root cannot look up names. Nothing here belongs to this user, nothing is ever written.
USER 1000:1000
EXPOSE 3000 3001 3003
# Whether the process answers. Whether it can serve is /readyz: an outage of the store is no reason to restart all that wait for it.
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["/app/bin/quillgate", "health"]
ENTRYPOINT ["/app/bin/quillgate"]
CMD ["api"]

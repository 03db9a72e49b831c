package io.github.bowsprit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Manifests of the tests. */
public final class Manifests {
    public static final String SHIPS = """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: ships.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: ships, singular: ship, kind: Ship}
          versions:
          - name: v1
            served: true
            storage: true
            schema:
              openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}
        """;

    public static final String WEB = """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: nginx}]}
        """;

    private Manifests() {}

    /** Returns a new file with a text. */
    public static Path file(String text) {
        try {
            Path file = Files.createTempFile("manifest-", ".yaml");
            file.toFile().deleteOnExit();
            return Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static String ship(Object masts) {
        return "{apiVersion: example.com/v1, kind: Ship, metadata: {name: a}, spec: {masts: " + masts + "}}";
    }
}

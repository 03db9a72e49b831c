package org.testcontainers.utility;

/** Declares the methods of Testcontainers that the module uses. It is not part of the package. */
public final class DockerImageName {
    private DockerImageName() {}

    public static DockerImageName parse(String name) {
        throw new UnsupportedOperationException();
    }
}

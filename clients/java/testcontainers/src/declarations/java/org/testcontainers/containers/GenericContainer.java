package org.testcontainers.containers;

import java.io.IOException;
import org.testcontainers.containers.wait.strategy.WaitStrategy;
import org.testcontainers.utility.DockerImageName;

/** Declares the methods of Testcontainers that the module uses. It is not part of the package. */
public class GenericContainer<S extends GenericContainer<S>> implements AutoCloseable {
    protected GenericContainer(DockerImageName name) {
        throw new UnsupportedOperationException();
    }

    public S withExposedPorts(Integer... ports) {
        throw new UnsupportedOperationException();
    }

    public S waitingFor(WaitStrategy strategy) {
        throw new UnsupportedOperationException();
    }

    public void setCommandParts(String[] parts) {
        throw new UnsupportedOperationException();
    }

    public ExecResult execInContainer(String... command) throws IOException, InterruptedException {
        throw new UnsupportedOperationException();
    }

    public String getHost() {
        throw new UnsupportedOperationException();
    }

    public Integer getMappedPort(int port) {
        throw new UnsupportedOperationException();
    }

    protected void configure() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }

    /** The result of a command in a container. */
    public static final class ExecResult {
        public int getExitCode() {
            throw new UnsupportedOperationException();
        }

        public String getStdout() {
            throw new UnsupportedOperationException();
        }

        public String getStderr() {
            throw new UnsupportedOperationException();
        }
    }
}

package io.github.bowsprit.testcontainers;

import java.io.IOException;
import java.util.stream.Stream;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * A server in a container, for machines on which the program cannot run.
 *
 * <pre>{@code
 * try (BowspritContainer server = new BowspritContainer("bowsprit:VERSION").withSimulation("nodes=3")) {
 *     server.start();
 *     Config config = Config.fromKubeconfig(server.getKubeConfigYaml());
 * }
 * }</pre>
 */
public class BowspritContainer extends GenericContainer<BowspritContainer> {
    private static final int PORT = 6443;
    private static final String READY = ".*Bowsprit is ready at .*\\n";

    private String simulation;

    public BowspritContainer(String image) {
        super(DockerImageName.parse(image));
        withExposedPorts(PORT);
        waitingFor(Wait.forLogMessage(READY, 1));
    }

    /** Runs controllers, and simulates nodes and pods. */
    public BowspritContainer withSimulation(String settings) {
        simulation = settings;
        return this;
    }

    @Override
    protected void configure() {
        String simulate = simulation == null ? "" : "--simulate=" + simulation;
        setCommandParts(Stream.of("serve", "--bind-address=0.0.0.0", simulate).filter(word -> !word.isEmpty())
            .toArray(String[]::new));
    }

    /** Returns a kubeconfig of the administrator. The certificate of the server is valid for localhost. */
    public String getKubeConfigYaml() {
        try {
            ExecResult result = execInContainer("/bowsprit", "kubeconfig");
            if (result.getExitCode() != 0) {
                throw new IllegalStateException("bowsprit kubeconfig: " + result.getStderr());
            }
            String server = "https://" + getHost() + ":" + getMappedPort(PORT) + "\n    tls-server-name: localhost";
            return result.getStdout().replaceFirst("https://[^\\s\"']+", server);
        } catch (IOException e) {
            throw new IllegalStateException("bowsprit kubeconfig: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("bowsprit kubeconfig was interrupted", e);
        }
    }
}

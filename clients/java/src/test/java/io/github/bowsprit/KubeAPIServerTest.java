package io.github.bowsprit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KubeAPIServerTest {
    private static KubeAPIServer server;

    @BeforeAll
    static void start() {
        server = KubeAPIServer.builder().simulate("nodes=2").install(Manifests.file(Manifests.SHIPS).toString()).start();
    }

    @AfterAll
    static void stop() {
        server.stop();
        assertFalse(server.isRunning());
        assertEquals("", server.log());
    }

    @Test
    void definitionsAndObjects() {
        try (Namespace sea = server.namespace("sea")) {
            assertTrue(sea.getName().startsWith("sea-"), sea.getName());
            sea.kubectlWithInput(Manifests.ship(3), "create", "--filename=-");
            assertEquals("3", sea.kubectl("get", "ship", "a", "--output=jsonpath={.spec.masts}"));
            BowspritException refused = assertThrows(BowspritException.class,
                () -> sea.kubectlWithInput(Manifests.ship("three"), "apply", "--filename=-"));
            assertTrue(refused.getMessage().contains("spec.masts"), refused.getMessage());
        }
    }

    @Test
    void workloads() {
        try (Namespace one = server.namespace("web")) {
            one.kubectlWithInput(Manifests.WEB, "apply", "--filename=-");
            one.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=60s");
            assertEquals("Running Running", one.kubectl("get", "pods", "--output=jsonpath={.items[*].status.phase}"));
        }
    }

    @Test
    void users() {
        try (Namespace one = server.namespace("users")) {
            String eve = server.user("eve", "nobodies");
            BowspritException refused = assertThrows(BowspritException.class,
                () -> server.kubectlAs(eve, null, "get", "pods", "--namespace=" + one.getName()));
            assertTrue(refused.getMessage().contains("User \"eve\" cannot list"), refused.getMessage());
            String ann = one.user("ann", "edit");
            server.kubectlAs(ann, null, "create", "configmap", "a");
            assertTrue(one.kubectl("get", "configmaps").contains("a "));
        }
    }

    @Test
    void namespacesAreDeleted() {
        Namespace one = server.namespace("short");
        one.close();
        server.kubectl("wait", "--for=delete", "namespace/" + one.getName(), "--timeout=60s");
    }

    @Test
    void aServerThatCannotStart() {
        BowspritException failed = assertThrows(BowspritException.class,
            () -> KubeAPIServer.builder().args("--nosuch").start());
        assertTrue(failed.getMessage().contains("unknown flag: --nosuch"), failed.getMessage());
    }

    @Test
    void theProgram(@TempDir Path directory) throws Exception {
        Path program = directory.resolve("bowsprit");
        Map<String, String> env = Map.of("BOWSPRIT", program.toString());
        assertTrue(assertThrows(BowspritException.class, () -> Binary.find(null, null, env)).getMessage()
            .contains("the variable BOWSPRIT is"));
        Files.createFile(program);
        assertTrue(program.toFile().setExecutable(true));
        assertEquals(program, Binary.find(null, null, env));
        assertEquals(program, Binary.find(null, null, Map.of("PATH", "/nosuch:" + directory)));
        assertEquals(program, Binary.find(program.toString(), "/nosuch", Map.of()));
        assertThrows(BowspritException.class, () -> Binary.find(null, null, Map.of("PATH", "/nosuch")));
        assertEquals("linux-amd64", Binary.platform("Linux", "amd64"));
        assertEquals("darwin-arm64", Binary.platform("Mac OS X", "aarch64"));
    }

    @Test
    void theUsersKubeconfig(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("kube/config");
        UserKubeconfig first = UserKubeconfig.replace(file, "new");
        assertThrows(BowspritException.class, () -> UserKubeconfig.replace(file, "other"));
        first.restore();
        assertFalse(Files.exists(file));
        Files.writeString(file, "old");
        UserKubeconfig second = UserKubeconfig.replace(file, "new");
        assertEquals("new", Files.readString(file));
        second.restore();
        assertEquals("old", Files.readString(file));
    }

    /** A killed process leaves no server. The process runs {@link Main}. */
    @Test
    void aKilledProcess(@TempDir Path directory) throws Exception {
        Process process = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(),
            "-Djava.io.tmpdir=" + directory, "-cp", System.getProperty("java.class.path"), Main.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader output = process.inputReader()) {
            long pid = Long.parseLong(output.readLine());
            assertNotEquals(server.pid(), pid);
            ProcessHandle child = ProcessHandle.of(pid).orElseThrow();
            process.destroyForcibly().waitFor();
            child.onExit().get(60, TimeUnit.SECONDS);
        }
    }

    /** Starts a server, prints its number, and waits to be killed. */
    static final class Main {
        public static void main(String[] args) throws Exception {
            System.out.println(KubeAPIServer.builder().start().pid());
            Thread.currentThread().join();
        }
    }
}

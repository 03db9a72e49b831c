package io.github.bowsprit.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.bowsprit.BowspritException;
import io.github.bowsprit.KubeAPIServer;
import io.github.bowsprit.Namespace;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** The forms of the annotations. The runner executes the tests in parallel. */
class ExtensionTest {
    @Nested
    @EnableKubeAPIServer
    class OfAClass {
        @KubeConfig
        String kubeConfigYaml;

        KubeAPIServer server;

        private static final Set<String> NAMES = ConcurrentHashMap.newKeySet();

        @RepeatedTest(4)
        void hasAServerAndANamespaceForEachTest(Namespace namespace, @KubeConfig String same) {
            assertEquals(same, kubeConfigYaml);
            assertTrue(same.contains(server.getUrl()));
            assertSame(server, namespace.getServer());
            assertTrue(NAMES.add(namespace.getName()), namespace.getName());
            namespace.kubectl("create", "configmap", "a");
        }
    }

    @Nested
    class OfAMethod {
        @KubeConfig
        String kubeConfigYaml;

        @Test
        @EnableKubeAPIServer(kubeAPIVersion = "1.36.*", apiServerFlags = "--v=1")
        void hasAServerOfAnEarlierRelease(KubeAPIServer server) {
            assertTrue(kubeConfigYaml.contains(server.getUrl()));
            String version = server.kubectl("get", "--raw=/version");
            assertTrue(version.contains("\"emulationMinor\": \"36\""), version);
        }
    }

    /** Two classes with the same attributes share a server. */
    static final Set<Long> SHARED = ConcurrentHashMap.newKeySet();

    static void share(KubeAPIServer server, Namespace namespace) {
        SHARED.add(server.pid());
        assertEquals(1, SHARED.size());
        assertNotNull(namespace.kubectl("get", "serviceaccount", "default", "--ignore-not-found"));
    }

    @Nested
    @EnableKubeAPIServer(shared = true)
    class Shared {
        @Test
        void one(KubeAPIServer server, Namespace namespace) {
            share(server, namespace);
        }
    }

    @Nested
    @EnableKubeAPIServer(shared = true)
    class SharedToo {
        @Test
        void two(KubeAPIServer server, Namespace namespace) {
            share(server, namespace);
        }

        @Test
        @EnableKubeAPIServer
        void ofTheMethod(KubeAPIServer server) {
            assertNotEquals(Set.of(server.pid()), SHARED);
        }
    }

    @Test
    void releases() {
        assertEquals("1.36", KubeAPIServerExtension.release("v1.36.2"));
        assertEquals("1.37", KubeAPIServerExtension.release("1.37"));
        assertThrows(BowspritException.class, () -> KubeAPIServerExtension.release("latest"));
    }
}

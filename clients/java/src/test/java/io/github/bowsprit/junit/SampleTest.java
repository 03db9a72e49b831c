package io.github.bowsprit.junit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** A test in the form of fabric8's KubeAPITest, with other imports. */
@EnableKubeAPIServer
class SampleTest {
    @KubeConfig
    static String kubeConfigYaml;

    @Test
    void receivesTheKubeconfig() {
        assertTrue(kubeConfigYaml.contains("certificate-authority-data"), kubeConfigYaml);
    }
}

package io.github.bowsprit;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The server and the client certificate of a kubeconfig that Bowsprit has written. */
final class Credentials {
    private final String server;
    private final String authority;
    private final String certificate;
    private final String key;

    Credentials(String kubeconfig) {
        server = field(kubeconfig, "server");
        authority = field(kubeconfig, "certificate-authority-data");
        certificate = field(kubeconfig, "client-certificate-data");
        key = field(kubeconfig, "client-key-data");
    }

    private static String field(String kubeconfig, String name) {
        Matcher found = Pattern.compile("^\\s+" + name + ": [\"']?([^\\s\"']+)[\"']?$", Pattern.MULTILINE).matcher(kubeconfig);
        if (!found.find()) {
            throw new BowspritException("the kubeconfig of bowsprit has no " + name);
        }
        return found.group(1);
    }

    /** Returns a kubeconfig with a namespace. It is JSON, which each reader of YAML accepts. */
    String kubeconfig(String namespace) {
        return """
            {"apiVersion": "v1", "kind": "Config", "current-context": "bowsprit",
             "clusters": [{"name": "bowsprit", "cluster": {
              "server": "%s", "certificate-authority-data": "%s"}}],
             "users": [{"name": "bowsprit", "user": {
              "client-certificate-data": "%s", "client-key-data": "%s"}}],
             "contexts": [{"name": "bowsprit", "context": {
              "cluster": "bowsprit", "user": "bowsprit", "namespace": "%s"}}]}
            """.formatted(server, authority, certificate, key, namespace);
    }
}

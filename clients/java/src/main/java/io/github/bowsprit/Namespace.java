package io.github.bowsprit;

import java.util.ArrayList;
import java.util.List;

/** A namespace of a server, and a kubeconfig of the administrator with this namespace. */
public final class Namespace implements AutoCloseable {
    private final KubeAPIServer server;
    private final String name;
    private final String kubeconfig;

    Namespace(KubeAPIServer server, String name, String kubeconfig) {
        this.server = server;
        this.name = name;
        this.kubeconfig = kubeconfig;
    }

    /** Returns the name. */
    public String getName() {
        return name;
    }

    /** Returns the server. */
    public KubeAPIServer getServer() {
        return server;
    }

    /** Returns a kubeconfig of the administrator with this namespace. */
    public String getKubeConfigYaml() {
        return kubeconfig;
    }

    /** Runs the built-in kubectl in this namespace, and returns its output. */
    public String kubectl(String... args) {
        return server.kubectlAs(kubeconfig, null, args);
    }

    /** Runs kubectl in this namespace with a text as its standard input. */
    public String kubectlWithInput(String input, String... args) {
        return server.kubectlAs(kubeconfig, input, args);
    }

    /** Applies files whose objects name their namespaces or have none. */
    public void install(String... paths) {
        List<String> args = new ArrayList<>(List.of("apply", "--server-side"));
        for (String path : paths) {
            args.add("--filename=" + path);
        }
        kubectl(args.toArray(String[]::new));
    }

    /** Returns the kubeconfig of a user in this namespace, with a cluster role such as "edit" there. */
    public String user(String user, String role) {
        kubectl("create", "rolebinding", user + "-" + role, "--clusterrole=" + role, "--user=" + user);
        return server.userIn(name, user);
    }

    /** Deletes the namespace. */
    @Override
    public void close() {
        if (server.isRunning()) {
            server.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found");
        }
    }
}

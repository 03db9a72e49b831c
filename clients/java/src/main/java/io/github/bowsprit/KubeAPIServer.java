package io.github.bowsprit;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A server without a data directory, on a free port of 127.0.0.1, in a process of its own. It stops with this process,
 * even if that is killed.
 *
 * <pre>{@code
 * try (KubeAPIServer server = KubeAPIServer.builder().simulate("nodes=3").install("crds").start()) {
 *     Config config = Config.fromKubeconfig(server.getKubeConfigYaml());
 * }
 * }</pre>
 *
 * The methods may be called by several threads, except for {@link #start} and {@link #stop}.
 */
public final class KubeAPIServer implements AutoCloseable {
    private static final Pattern READY = Pattern.compile("Bowsprit is ready at (\\S+)");
    private static final Pattern KUBECONFIG = Pattern.compile("\\s+export KUBECONFIG=(.+)");
    private static final Set<KubeAPIServer> RUNNING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> RUNNING.forEach(KubeAPIServer::stop), "bowsprit-stop"));
    }

    private final Builder settings;
    private final AtomicInteger files = new AtomicInteger();
    private final CountDownLatch announced = new CountDownLatch(1);
    private volatile String url;
    private volatile Path data; // the directory of the server's own kubeconfig
    private Path binary;
    private Path directory;
    private Process process;
    private Credentials admin;
    private UserKubeconfig updated;

    /** A server with the default settings. */
    public KubeAPIServer() {
        this(builder());
    }

    private KubeAPIServer(Builder settings) {
        this.settings = settings;
    }

    /** Returns the settings of a new server. */
    public static Builder builder() {
        return new Builder();
    }

    /** Starts the server, and returns when it answers and everything is installed. A server starts once. */
    public KubeAPIServer start() {
        if (process != null) {
            throw new BowspritException("the server has been started already");
        }
        binary = Binary.find(settings.binary);
        try {
            directory = Files.createTempDirectory("bowsprit-java-");
            launch();
            admin = new Credentials(Files.readString(data.resolve("kubeconfig")));
            if (settings.updateKubeConfigFile) {
                updated = UserKubeconfig.replace(getKubeConfigYaml());
            }
            if (!settings.install.isEmpty()) {
                install(settings.install.toArray(String[]::new));
            }
        } catch (IOException e) {
            stop();
            throw new BowspritException("start bowsprit: " + e.getMessage(), e);
        } catch (RuntimeException e) {
            stop();
            throw e;
        }
        return this;
    }

    private void launch() throws IOException {
        List<String> command = new ArrayList<>(
            List.of(binary.toString(), "serve", "--ephemeral", "--secure-port=0", "--stop-with-stdin"));
        if (!settings.simulate.isEmpty()) {
            command.add("--simulate=" + settings.simulate);
        }
        command.addAll(settings.args);
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(directory.resolve("log").toFile());
        builder.environment().remove("KUBECONFIG");
        builder.environment().put("TMPDIR", directory.toString());
        process = builder.start(); // its standard input is a pipe, which ends with this process
        RUNNING.add(this);
        Thread reader = new Thread(this::read, "bowsprit-output");
        reader.setDaemon(true);
        reader.start();
        boolean inTime;
        try {
            inTime = announced.await(settings.timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BowspritException("the start was interrupted", e);
        }
        if (url == null || data == null) {
            String reason = inTime ? " ended:\n" : " is not ready after " + settings.timeout + ":\n";
            throw new BowspritException(String.join(" ", command) + reason + log());
        }
    }

    /** Reads the server's output to its end. */
    private void read() {
        try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                Matcher ready = READY.matcher(line);
                Matcher kubeconfig = KUBECONFIG.matcher(line);
                if (ready.lookingAt()) {
                    url = ready.group(1);
                } else if (kubeconfig.matches()) {
                    data = Path.of(unquoted(kubeconfig.group(1))).getParent();
                } else if (line.startsWith("Stop with")) {
                    announced.countDown();
                }
            }
        } catch (IOException e) {
            // the process has ended
        } finally {
            announced.countDown();
        }
    }

    /** Returns a word of a shell without its quotes. */
    private static String unquoted(String word) {
        return word.startsWith("'") ? word.substring(1, word.length() - 1).replace("'\\''", "'") : word;
    }

    /** Stops the server and removes its files. A stopped server stays stopped. */
    public synchronized void stop() {
        if (updated != null) {
            updated.restore();
            updated = null;
        }
        if (process != null && process.isAlive()) {
            process.destroy();
            try {
                if (!process.waitFor(settings.timeout.toMillis(), TimeUnit.MILLISECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException e) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }
        RUNNING.remove(this);
        if (directory != null) {
            remove(directory);
        }
    }

    private static void remove(Path directory) {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted((a, b) -> b.compareTo(a)).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException | RuntimeException e) {
            // the system removes temporary files
        }
    }

    @Override
    public void close() {
        stop();
    }

    /** Reports whether the process of the server runs. */
    public boolean isRunning() {
        return process != null && process.isAlive();
    }

    /** Returns the number of the server's process. */
    public long pid() {
        return process.pid();
    }

    /** Returns the URL of the server, such as https://127.0.0.1:41235. */
    public String getUrl() {
        return url;
    }

    /** Returns a kubeconfig of the administrator. */
    public String getKubeConfigYaml() {
        return admin.kubeconfig("default");
    }

    /** Returns a kubeconfig of the administrator as a file, which {@link #stop} removes. */
    public Path getKubeConfigFile() {
        return write(getKubeConfigYaml());
    }

    /** Returns the server's log. */
    public String log() {
        try {
            return Files.readString(directory.resolve("log"));
        } catch (IOException | NullPointerException e) { // stopped, or not started
            return "";
        }
    }

    /** Applies files, and all YAML and JSON files of directories. Waits until definitions are served. */
    public void install(String... paths) {
        List<String> command = new ArrayList<>(List.of("import"));
        command.addAll(Arrays.asList(paths));
        Path file = getKubeConfigFile();
        command.add("--kubeconfig=" + file);
        run(null, null, command);
    }

    /** Runs the built-in kubectl as the administrator, and returns its output. */
    public String kubectl(String... args) {
        return kubectlAs(getKubeConfigYaml(), null, args);
    }

    String kubectlAs(String kubeconfig, String input, String... args) {
        List<String> command = new ArrayList<>(List.of("kubectl"));
        command.addAll(Arrays.asList(args));
        return run(write(kubeconfig), input, command);
    }

    /** Runs kubectl with a text as its standard input: {@code "apply", "-f", "-"} applies manifests. */
    public String kubectlWithInput(String input, String... args) {
        return kubectlAs(getKubeConfigYaml(), input, args);
    }

    /** Returns the kubeconfig of a user. The user has the permissions of bindings to the name and the groups. */
    public String user(String name, String... groups) {
        return userIn("default", name, groups);
    }

    String userIn(String namespace, String name, String... groups) {
        List<String> command = new ArrayList<>(List.of("kubeconfig", "--user=" + name, "--data-dir=" + data));
        for (String group : groups) {
            command.add("--group=" + group);
        }
        return new Credentials(run(null, null, command)).kubeconfig(namespace);
    }

    /** Creates a namespace with a unique name. {@link Namespace#close} deletes it. */
    public Namespace namespace(String prefix) {
        String name = kubectlWithInput(
            "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"generateName\": \"" + prefix + "-\"}}",
            "create", "--filename=-", "--output=jsonpath={.metadata.name}");
        return new Namespace(this, name, admin.kubeconfig(name));
    }

    /** Writes a file that only this user can read. */
    private Path write(String text) {
        Path file = directory.resolve("kubeconfig-" + files.incrementAndGet());
        try {
            UserKubeconfig.writePrivate(file, text);
        } catch (FileAlreadyExistsException e) {
            throw new BowspritException(file + " exists", e);
        } catch (IOException e) {
            throw new BowspritException("write " + file + ": " + e.getMessage(), e);
        }
        return file;
    }

    private String run(Path kubeconfig, String input, List<String> args) {
        if (process == null) {
            throw new BowspritException("the server is not started");
        }
        List<String> command = new ArrayList<>(List.of(binary.toString()));
        command.addAll(args);
        ProcessBuilder builder = new ProcessBuilder(command);
        if (kubeconfig != null) {
            builder.environment().put("KUBECONFIG", kubeconfig.toString());
        }
        Path errors = directory.resolve("errors-" + files.incrementAndGet());
        builder.redirectError(errors.toFile());
        try {
            Process done = builder.start();
            try (var in = done.outputWriter(StandardCharsets.UTF_8)) {
                in.write(Objects.requireNonNullElse(input, ""));
            } catch (IOException e) {
                // the program does not read its input: its exit code decides
            }
            String output = new String(done.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int code = done.waitFor();
            String message = Files.readString(errors);
            Files.delete(errors);
            if (code != 0) {
                throw new BowspritException("bowsprit " + String.join(" ", args) + ": " + message + output);
            }
            return output;
        } catch (IOException e) {
            throw new BowspritException("bowsprit " + String.join(" ", args) + ": " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BowspritException("bowsprit " + String.join(" ", args) + " was interrupted", e);
        }
    }

    /** The settings of a server. */
    public static final class Builder {
        private String binary;
        private String simulate = "";
        private final List<String> install = new ArrayList<>();
        private final List<String> args = new ArrayList<>();
        private Duration timeout = Duration.ofSeconds(60);
        private boolean updateKubeConfigFile;

        private Builder() {}

        /** Names the program. */
        public Builder binary(String path) {
            binary = path;
            return this;
        }

        /** Runs controllers, and simulates nodes and pods, with settings such as {@code nodes=3,zones=3}. */
        public Builder simulate(String settings) {
            simulate = settings;
            return this;
        }

        /** Adds files and directories with definitions and other objects, which the server gets at its start. */
        public Builder install(String... paths) {
            install.addAll(Arrays.asList(paths));
            return this;
        }

        /** Adds arguments of {@code bowsprit serve}. Its flags have the names of kube-apiserver's. */
        public Builder args(String... more) {
            args.addAll(Arrays.asList(more));
            return this;
        }

        /** Bounds the start, 60 seconds by default. */
        public Builder timeout(Duration most) {
            timeout = most;
            return this;
        }

        /** Replaces the user's kubeconfig while the server runs, for clients without another configuration. */
        public Builder updateKubeConfigFile(boolean update) {
            updateKubeConfigFile = update;
            return this;
        }

        /** Returns the server, which is not started. */
        public KubeAPIServer build() {
            return new KubeAPIServer(this);
        }

        /** Returns the server when it has started. */
        public KubeAPIServer start() {
            return build().start();
        }
    }
}

package io.github.bowsprit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** The kubeconfig of the user, while a server replaces it. One server of this process can do so at a time. */
final class UserKubeconfig {
    private static boolean taken;

    private final Path file;
    private final byte[] before; // null if there was no file

    private UserKubeconfig(Path file, byte[] before) {
        this.file = file;
        this.before = before;
    }

    /** Replaces the first file of KUBECONFIG, or ~/.kube/config. */
    static UserKubeconfig replace(String text) throws IOException {
        String named = System.getenv("KUBECONFIG");
        return replace(named == null || named.isEmpty() ? Path.of(System.getProperty("user.home"), ".kube", "config")
            : Path.of(named.split(java.io.File.pathSeparator)[0]), text);
    }

    static synchronized UserKubeconfig replace(Path file, String text) throws IOException {
        if (taken) {
            throw new BowspritException("another server of this process has replaced " + file
                + ": use a kubeconfig of each server instead of updateKubeConfigFile");
        }
        byte[] before = Files.exists(file) ? Files.readAllBytes(file) : null;
        Files.createDirectories(file.toAbsolutePath().getParent());
        if (before == null) {
            writePrivate(file, text);
        } else {
            Files.writeString(file, text);
        }
        taken = true;
        return new UserKubeconfig(file, before);
    }

    void restore() {
        synchronized (UserKubeconfig.class) {
            taken = false;
            try {
                if (before == null) {
                    Files.deleteIfExists(file);
                } else {
                    Files.write(file, before);
                }
            } catch (IOException e) {
                throw new BowspritException("restore " + file + ": " + e.getMessage(), e);
            }
        }
    }

    /** Creates a file that only this user can read. */
    static void writePrivate(Path file, String text) throws IOException {
        Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.writeString(file, text);
    }
}

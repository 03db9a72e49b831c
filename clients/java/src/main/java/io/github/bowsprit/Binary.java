package io.github.bowsprit;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/** The program that the package starts. */
final class Binary {
    private static Path unpacked;

    private Binary() {}

    /**
     * Returns the program: the given one, else the system property {@code bowsprit.binary}, the variable BOWSPRIT, the
     * program in the class path (a jar for this platform), or bowsprit in PATH.
     */
    static Path find(String given) {
        return find(given, System.getProperty("bowsprit.binary"), System.getenv());
    }

    static Path find(String given, String property, Map<String, String> env) {
        String[][] sources = {
            {"binary", given}, {"the property bowsprit.binary", property}, {"the variable BOWSPRIT", env.get("BOWSPRIT")},
        };
        for (String[] source : sources) {
            if (source[1] == null || source[1].isEmpty()) {
                continue;
            }
            Path path = Path.of(source[1]).toAbsolutePath();
            if (!isProgram(path)) {
                throw new BowspritException(source[0] + " is " + source[1] + ", and that is no program");
            }
            return path;
        }
        Path packaged = unpack();
        if (packaged != null) {
            return packaged;
        }
        for (String directory : env.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path path = Path.of(directory, "bowsprit").toAbsolutePath();
            if (isProgram(path)) {
                return path;
            }
        }
        throw new BowspritException("bowsprit is not installed: add the jar for your platform to the class path, or set the "
            + "variable BOWSPRIT to the program, or put it into a directory of PATH");
    }

    private static boolean isProgram(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path);
    }

    /** Returns the name of this platform in the jars with a classifier, such as linux-amd64. */
    static String platform(String os, String arch) {
        String system = os.toLowerCase(Locale.ROOT).startsWith("mac") ? "darwin" : os.toLowerCase(Locale.ROOT);
        return system + "-" + switch (arch) {
            case "x86_64", "amd64" -> "amd64";
            case "aarch64", "arm64" -> "arm64";
            default -> arch;
        };
    }

    /** Copies the program in the class path to a file, once for the process. Returns null without one. */
    private static synchronized Path unpack() {
        String name = "/META-INF/bowsprit/" + platform(System.getProperty("os.name"), System.getProperty("os.arch"))
            + "/bowsprit";
        if (unpacked != null) {
            return unpacked;
        }
        try (InputStream in = Binary.class.getResourceAsStream(name)) {
            if (in == null) {
                return null;
            }
            Path directory = Files.createTempDirectory("bowsprit-java-program-");
            Path file = directory.resolve("bowsprit");
            Files.copy(in, file);
            if (!file.toFile().setExecutable(true)) {
                throw new BowspritException(file + " cannot become a program");
            }
            directory.toFile().deleteOnExit(); // after the file: the order is reversed
            file.toFile().deleteOnExit();
            unpacked = file;
            return file;
        } catch (IOException e) {
            throw new BowspritException("unpack the program: " + e.getMessage(), e);
        }
    }
}

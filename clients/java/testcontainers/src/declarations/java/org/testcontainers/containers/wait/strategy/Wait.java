package org.testcontainers.containers.wait.strategy;

/** Declares the methods of Testcontainers that the module uses. It is not part of the package. */
public final class Wait {
    private Wait() {}

    public static WaitStrategy forLogMessage(String pattern, int times) {
        throw new UnsupportedOperationException();
    }
}

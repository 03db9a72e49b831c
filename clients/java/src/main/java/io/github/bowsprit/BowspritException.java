package io.github.bowsprit;

/** A server that does not start, or a command that it refuses. */
public class BowspritException extends RuntimeException {
    private static final long serialVersionUID = 1;

    public BowspritException(String message) {
        super(message);
    }

    public BowspritException(String message, Throwable cause) {
        super(message, cause);
    }
}

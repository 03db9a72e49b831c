package org.testcontainers.containers.wait.strategy;

/** Declares the type of Testcontainers that the module uses. It is not part of the package. */
public interface WaitStrategy {}

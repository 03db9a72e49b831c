package io.github.bowsprit.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Starts a server for the tests of a class, or on a method for one test. A test receives it through a parameter or a
 * static field of type {@link io.github.bowsprit.KubeAPIServer}, its kubeconfig through {@link KubeConfig}, and a new
 * namespace through a parameter of type {@link io.github.bowsprit.Namespace}.
 *
 * <p>The names of the first three attributes are fabric8 KubeAPITest's.
 */
@ExtendWith(KubeAPIServerExtension.class)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
public @interface EnableKubeAPIServer {
    /** The value of an attribute that is not set. */
    String NOT_SET = "NOT_SET";

    /** The release of Kubernetes that the server behaves like: 1.37, or 1.36.* for an earlier one. */
    String kubeAPIVersion() default NOT_SET;

    /** Further arguments of bowsprit serve. Its flags have the names of kube-apiserver's. */
    String[] apiServerFlags() default {};

    /** Replaces the user's kubeconfig while the server runs. */
    boolean updateKubeConfigFile() default false;

    /** Runs controllers, and simulates nodes and pods, with settings such as nodes=3. */
    String simulate() default "";

    /** Files and directories with definitions and other objects, which the server gets at its start. */
    String[] install() default {};

    /** Shares one server among all classes of this process with the same attributes. */
    boolean shared() default false;
}

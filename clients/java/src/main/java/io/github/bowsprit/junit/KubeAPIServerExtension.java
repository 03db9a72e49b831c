package io.github.bowsprit.junit;

import io.github.bowsprit.BowspritException;
import io.github.bowsprit.KubeAPIServer;
import io.github.bowsprit.Namespace;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestWatcher;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * The extension of {@link EnableKubeAPIServer}. Servers are in the stores of JUnit, which end with the test, the class or
 * the process, so that tests may run in parallel. A failed test shows the end of the server's log.
 */
public final class KubeAPIServerExtension
    implements BeforeAllCallback, BeforeEachCallback, ParameterResolver, TestWatcher {
    private static final ExtensionContext.Namespace STORE = ExtensionContext.Namespace.create(KubeAPIServerExtension.class);
    private static final int LOG_LINES = 100;

    /** A server in a store. */
    private record Running(KubeAPIServer server) implements CloseableResource {
        @Override
        public void close() {
            server.stop();
        }
    }

    /** A namespace in the store of a test. */
    private record Created(Namespace namespace) implements CloseableResource {
        @Override
        public void close() {
            namespace.close();
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        start(context);
        inject(context, context.getRequiredTestClass(), null);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        if (context.getElement().isPresent() && AnnotationSupport.isAnnotated(context.getElement(), EnableKubeAPIServer.class)) {
            start(context);
        }
        if (find(context).isPresent()) {
            for (Object instance : context.getRequiredTestInstances().getAllInstances()) {
                inject(context, instance.getClass(), instance);
            }
        }
    }

    private static void start(ExtensionContext context) {
        AnnotationSupport.findAnnotation(context.getElement(), EnableKubeAPIServer.class).ifPresent(settings -> {
            ExtensionContext.Store store = (settings.shared() ? context.getRoot() : context).getStore(STORE);
            Running running = store.getOrComputeIfAbsent(settings.shared() ? settings : Running.class,
                key -> new Running(started(settings)), Running.class);
            context.getStore(STORE).put("server", running.server());
        });
    }

    private static KubeAPIServer started(EnableKubeAPIServer settings) {
        KubeAPIServer.Builder builder = KubeAPIServer.builder().simulate(settings.simulate()).install(settings.install())
            .updateKubeConfigFile(settings.updateKubeConfigFile());
        if (!settings.kubeAPIVersion().equals(EnableKubeAPIServer.NOT_SET)) {
            builder.args("--emulated-version=" + release(settings.kubeAPIVersion()));
        }
        return builder.args(settings.apiServerFlags()).start();
    }

    /** Returns the release of a version: 1.36 of v1.36.2 or 1.36.*. */
    static String release(String version) {
        String[] numbers = version.replaceFirst("^v", "").split("\\.");
        if (numbers.length < 2) {
            throw new BowspritException("kubeAPIVersion is " + version + ": use a release such as 1.37");
        }
        return numbers[0] + "." + numbers[1];
    }

    private static Optional<KubeAPIServer> find(ExtensionContext context) {
        return Optional.ofNullable(context.getStore(STORE).get("server", KubeAPIServer.class));
    }

    private static KubeAPIServer server(ExtensionContext context) {
        return find(context).orElseThrow(() -> new BowspritException("neither the test nor its class has @EnableKubeAPIServer"));
    }

    /** Sets the fields of an instance, or for null the static fields of a class. */
    private static void inject(ExtensionContext context, Class<?> type, Object instance) {
        List<Field> fields = ReflectionSupport.findFields(type, field -> isInjected(field)
            && Modifier.isStatic(field.getModifiers()) == (instance == null), HierarchyTraversalMode.TOP_DOWN);
        for (Field field : fields) {
            KubeAPIServer server = server(context);
            try {
                field.setAccessible(true);
                field.set(instance, field.getType() == KubeAPIServer.class ? server : server.getKubeConfigYaml());
            } catch (IllegalAccessException e) {
                throw new BowspritException("set " + field + ": " + e.getMessage(), e);
            }
        }
    }

    private static boolean isInjected(Field field) {
        if (field.isAnnotationPresent(KubeConfig.class)) {
            if (field.getType() != String.class) {
                throw new BowspritException("@KubeConfig " + field + " is no String");
            }
            return true;
        }
        return field.getType() == KubeAPIServer.class && !Modifier.isFinal(field.getModifiers());
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == KubeAPIServer.class || type == Namespace.class
            || type == String.class && parameter.isAnnotated(KubeConfig.class);
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        if (type == KubeAPIServer.class) {
            return server(context);
        }
        if (type == Namespace.class) {
            return context.getStore(STORE).getOrComputeIfAbsent(Created.class,
                key -> new Created(server(context).namespace("test")), Created.class).namespace();
        }
        return server(context).getKubeConfigYaml();
    }

    @Override
    public void testFailed(ExtensionContext context, Throwable cause) {
        find(context).map(KubeAPIServer::log).filter(log -> !log.isBlank()).ifPresent(log -> {
            String[] lines = log.split("\n");
            System.err.println("log of bowsprit, " + context.getDisplayName() + " failed:\n" + String.join("\n",
                Arrays.copyOfRange(lines, Math.max(0, lines.length - LOG_LINES), lines.length)));
        });
    }
}

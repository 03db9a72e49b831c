package extension

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Main is the main function of a program that is an extension API server. It reads flags (--help lists them), serves
// until SIGINT or SIGTERM, and ends the process.
func Main(s Server) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, s, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// run is Main without the process.
func run(ctx context.Context, s Server, args []string, out io.Writer) error {
	f := flag.NewFlagSet(os.Args[0], flag.ContinueOnError)
	f.SetOutput(out)
	kubeconfig := f.String("kubeconfig", "", "file that reaches the API server in front (default: that of the pod's cluster)")
	service := f.String("register-service", "", "namespace/name of the service by which the API server in front reaches "+
		"this one: registers the APIs there")
	address := f.String("register-address", "", "host name of this machine, for an API server in front that has no "+
		"network of pods: makes the service")
	verbosity := f.Int("v", 0, "how much to log: -1 warnings, 0 events of the server, 3 every request")
	f.StringVar(&s.Config.DataDir, "data-dir", s.Config.DataDir,
		"directory of objects and certificates (default: nothing outlives the process)")
	for _, setting := range s.Config.Settings(bowsprit.KubeAPIServer) {
		if offered(setting.Name) {
			bind(f, setting)
		}
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown argument %q: see --help", f.Arg(0))
	}
	if *kubeconfig != "" {
		front, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		if err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		s.Front = front
	}
	if *service != "" {
		namespace, name, _ := strings.Cut(*service, "/")
		s.Register = &Registration{Namespace: namespace, Service: name, Address: *address}
	}
	if s.Config.Log == nil {
		level := &slog.HandlerOptions{Level: slog.Level(-*verbosity)}
		s.Config.Log = slog.New(foreign.Log(slog.NewTextHandler(out, level)))
	}
	return s.Run(ctx)
}

// offered reports whether a setting of a server is one of an extension API server.
func offered(name string) bool {
	for _, beginning := range []string{
		"admission-control-config-file", "audit-log-path", "audit-policy-file", "audit-webhook-config-file", "bind-address",
		"etcd-", "max-", "request-timeout", "secure-port", "tls-",
	} {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// bind declares a flag. Kinds of settings that no offered one has are left out.
func bind(f *flag.FlagSet, s bowsprit.Setting) {
	switch v := s.Value.(type) {
	case *string:
		f.StringVar(v, s.Name, cmp.Or(*v, fallback[string](s)), s.Help)
	case *bool:
		f.BoolVar(v, s.Name, fallback[bool](s), s.Help)
	case *int:
		f.IntVar(v, s.Name, cmp.Or(*v, fallback[int](s)), s.Help)
	case *int64:
		f.Int64Var(v, s.Name, cmp.Or(*v, fallback[int64](s)), s.Help)
	case *time.Duration:
		f.DurationVar(v, s.Name, cmp.Or(*v, fallback[time.Duration](s)), s.Help)
	case *[]string:
		f.Func(s.Name, s.Help, func(text string) error {
			*v = append(*v, strings.Split(text, ",")...)
			return nil
		})
	case **bool:
		f.BoolFunc(s.Name, s.Help, func(text string) error {
			set, err := strconv.ParseBool(text)
			*v = &set
			return err
		})
	}
}

// fallback returns the default of a setting.
func fallback[T any](s bowsprit.Setting) T {
	v, _ := s.Default.(T)
	return v
}

package conversion

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// serving holds the flags of "bowsprit convert serve".
type serving struct {
	address, certDir string
	hosts            []string
	print            bool
	deployment
}

func serveCommand() *cobra.Command {
	o := &serving{}
	cmd := &cobra.Command{
		Use:   "serve (FILE | DIRECTORY)...",
		Short: "Convert by rules as a webhook for other clusters",
		Long: `Serve a conversion webhook that converts by the rules in the annotation ` + reshape.Annotation + ` of
CustomResourceDefinitions, for clusters that do not know the rules. A Bowsprit server needs no webhook.

The webhook is at /convert, with TLS; /healthz, /readyz and /metrics are at the same address. The certificate is tls.crt
and tls.key in --cert-dir, and is read again when the files change. If they are missing, the command makes them for
localhost and --host; clients trust the last certificate in tls.crt.

With --manifests the command prints the objects that run it in a cluster, and serves nothing: a new certificate in a
Secret, the definitions in a ConfigMap, a Deployment, a Service, and the definitions with the webhook in spec.conversion.
The output contains a private key.`,
		Example: `  bowsprit convert serve config/crd/bases --cert-dir ./certs
  bowsprit convert serve config/crd/bases --manifests --image registry.example.com/bowsprit:0.1 | kubectl apply -f -`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, all, err := load(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			registry := prometheus.NewRegistry()
			r, err := newReviewer(all, registry)
			switch {
			case err != nil:
				return err
			case o.print:
				return o.deployment.print(cmd.OutOrStdout(), all)
			}
			return o.serve(cmd.Context(), cmd.OutOrStdout(), r, registry)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "address", ":9443", "address to listen on; port 0 picks a free one")
	f.StringVar(&o.certDir, "cert-dir", "", "`directory` with tls.crt and tls.key (default: a new temporary directory)")
	f.StringSliceVar(&o.hosts, "host", nil, "name or address for a new certificate; may be repeated")
	f.BoolVar(&o.print, "manifests", false, "print the objects for a cluster instead of serving")
	o.bind(f)
	return cmd
}

// serve serves until a signal.
func (o *serving) serve(ctx context.Context, out io.Writer, r *reviewer, registry *prometheus.Registry) error {
	dir, remove, err := o.certificates()
	if err != nil {
		return err
	}
	defer remove()
	pair := &certificate{dir: dir}
	if _, err := pair.current(nil); err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Handler: r.handler(registry), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.current},
	}
	fmt.Fprintf(out, "Conversions of %d kinds are served at https://%s/convert; the certificate is %s.\nStop with Ctrl-C.\n",
		len(r.kinds), listener.Addr(), filepath.Join(dir, "tls.crt"))
	ended := make(chan error, 1) // one result
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = server.Shutdown(ending) // reviews in progress are answered
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// certificates returns the directory of the certificate, after making a missing certificate. remove removes a temporary
// directory.
func (o *serving) certificates() (dir string, remove func(), err error) {
	dir, remove = o.certDir, func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bowsprit-convert-"); err != nil {
			return "", nil, err
		}
		made := dir
		remove = func() { _ = os.RemoveAll(made) }
	}
	_, noCert := os.Stat(filepath.Join(dir, "tls.crt"))
	_, noKey := os.Stat(filepath.Join(dir, "tls.key"))
	if os.IsNotExist(noCert) && os.IsNotExist(noKey) {
		if err := pki.WriteServing(filepath.Join(dir, "tls"), o.hosts, time.Now()); err != nil {
			remove()
			return "", nil, fmt.Errorf("--cert-dir: %w", err)
		}
	}
	return dir, remove, nil
}

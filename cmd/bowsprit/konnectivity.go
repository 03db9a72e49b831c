package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// konnectivityLog are the flags of upstream's commands about the log.
type konnectivityLog struct{ serveFlags }

func (l *konnectivityLog) bind(f *pflag.FlagSet) {
	f.IntVarP(&l.verbosity, "v", "v", 0, "verbosity of the log")
	f.StringVar(&l.logFormat, "log-format", "text", "format of the log: text or json")
	for _, name := range []string{"logtostderr", "alsologtostderr"} { // the log is written anyway
		f.Bool(name, true, "accepted, without effect")
		_ = f.MarkHidden(name)
	}
}

func (l *konnectivityLog) open(cmd *cobra.Command) (*slog.Logger, error) {
	return newLogger(cmd.ErrOrStderr(), l.serveFlags)
}

// pagePorts holds the flags for the pages of a Konnectivity server or agent.
type pagePorts struct{ profiling, contention bool }

func (p *pagePorts) bind(f *pflag.FlagSet) {
	f.BoolVar(&p.profiling, "enable-profiling", false, "serve profiles at /debug/pprof of the admin port")
	f.BoolVar(&p.contention, "enable-contention-profiling", false,
		"collect the block profile; needs --enable-profiling")
}

// cipherSuites returns the numbers of cipher suites.
func cipherSuites(names []string) (ids []uint16, err error) {
	for _, name := range names {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("cipher suite %s not supported, doesn't exist or considered as insecure", name)
		}
		ids = append(ids, tls.CipherSuites()[i].ID)
	}
	return ids, nil
}

// poolOf reads authorities from a file.
func poolOf(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read CA cert %s: %w", file, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate", file)
	}
	return pool, nil
}

// envOr returns the value of an environment variable, or make's result.
func envOr(name string, make func() string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return make()
}

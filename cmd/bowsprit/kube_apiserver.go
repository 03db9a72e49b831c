package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/front/hostos"
)

// kubeFlags are the flags of kube-apiserver that have a meaning here and are not fields of bowsprit.Config.
type kubeFlags struct {
	serveFlags
	certDir                         string
	enabledPlugins, disabledPlugins []string
	otherGates                      []string // unsupported gates, Name=true|false
	version                         bool
}

func kubeAPIServerCommand() *cobra.Command {
	// etcd holds all lasting data, so there is no data directory. The server removes its temporary files when it ends.
	config := bowsprit.Config{Ephemeral: true, Controllers: bowsprit.ControllersConfig{Enabled: []string{"-*"}}}
	config.Authentication.NoOwnClients = true // as in kube-apiserver, which signs no client certificates
	flags := kubeFlags{}
	cmd := &cobra.Command{
		Use:   "kube-apiserver",
		Short: "Start the API server alone, with kube-apiserver's flags, on an external etcd",
		Long: `Start the API server with kube-apiserver's command line, for programs such as envtest. It accepts every flag of
kube-apiserver ` + bowsprit.Version().Kubernetes + `. Like kube-apiserver it runs no namespace controller
and no garbage collector, except if "bowsprit envtest --simulate" has installed it. Flags for features that Bowsprit does
not have are accepted, without effect, and logged once.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.version {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes v%s\n", bowsprit.Version().Kubernetes)
				return err
			}
			return runKubeAPIServer(cmd.Context(), config, flags, cmd.Flags())
		},
	}
	bindKubeFlags(cmd.Flags(), &config, &flags)
	return cmd
}

// bindKubeFlags declares all flags of kube-apiserver, with its defaults. The flags declared here have an effect; the
// rest of kube_apiserver_flags.tsv is only checked.
func bindKubeFlags(f *pflag.FlagSet, c *bowsprit.Config, o *kubeFlags) {
	// kube-apiserver also accepts --etcd_servers.
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if name == "audit-webhook-batch-initial-backoff" { // the older name
			name = "audit-webhook-initial-backoff"
		}
		return pflag.NormalizedName(name)
	})
	bindSettings(f, c, bowsprit.KubeAPIServer, &o.otherGates)
	f.StringVar(&o.certDir, "cert-dir", "",
		"directory of apiserver.crt and apiserver.key, created if missing, unless --tls-cert-file is set (default: in memory)")
	f.StringSliceVar(&o.enabledPlugins, "enable-admission-plugins", nil,
		"admission plugins to enable in addition to the default ones")
	f.StringSliceVar(&o.disabledPlugins, "disable-admission-plugins", nil, "default admission plugins to disable")
	f.StringVar(&o.logFormat, "logging-format", "text", "text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: -1 warnings, 0 events, 3 every request")
	f.BoolVar(&o.version, "version", false, "print the Kubernetes version of the API, and exit")
	for _, known := range readKubeFlags() {
		if f.Lookup(known.name) == nil {
			known.declareUnused(f)
		}
	}
}

func runKubeAPIServer(ctx context.Context, config bowsprit.Config, flags kubeFlags, given *pflag.FlagSet) error {
	if len(config.Etcd.Servers) == 0 {
		return errors.New(`--etcd-servers must be specified; for an embedded etcd use "bowsprit serve"`)
	}
	config.API.RuntimeConfig = likeKubernetes(config.API.RuntimeConfig)
	unused, err := flags.applyTo(&config)
	if err != nil {
		return err
	}
	given.Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*unusedValue); ok {
			unused = append(unused, "--"+f.Name)
		}
	})
	from, err := simulateAsAsset(&config, os.Args[0], os.Environ())
	if err != nil {
		return err
	}
	flags.adjust(&config)
	if config.Log, err = newLogger(os.Stderr, flags.serveFlags); err != nil {
		return err
	}
	klog.SetSlogLogger(config.Log) // messages of Kubernetes' libraries are summed up like the others
	config.Flags = settings(given)
	if len(unused) > 0 {
		config.Log.Warn("flags without effect", slog.Any("flags", unused))
	}
	if config.Workloads.Simulate != nil {
		config.Log.Info("controllers run and workloads are simulated", "setting", from)
		hostos.CollectSooner(hostos.LargeHeap)
	}
	return run(ctx, config, func(*bowsprit.Server) {})
}

// applyTo sets the fields of c from kube-apiserver's flags, and returns the flags without effect.
func (o *kubeFlags) applyTo(c *bowsprit.Config) (unused []string, err error) {
	if c.TLS.CertFile == "" && c.TLS.PrivateKeyFile == "" && o.certDir != "" {
		c.TLS.CertFile, c.TLS.PrivateKeyFile, err = servingFiles(o.certDir, c.Listen.BindAddress,
			c.Services.AdvertiseAddress)
		if err != nil {
			return nil, err
		}
	}
	if len(c.Authorization.Modes) == 0 && c.Authorization.ConfigFile == "" {
		c.Authorization.Modes = []string{"AlwaysAllow"} // kube-apiserver's default
	}
	for _, gate := range o.otherGates {
		unused = append(unused, "--feature-gates="+gate)
	}
	ours := bowsprit.AdmissionPlugins()
	plugins := func(flag string, names []string, missing func(string)) {
		for _, name := range names {
			switch {
			case !slices.Contains(kubeAdmissionPlugins, name):
				err = errors.Join(err,
					fmt.Errorf("--%s: plugin %q is unknown: use %s", flag, name,
						strings.Join(kubeAdmissionPlugins, ", ")))
			case !slices.Contains(ours, name):
				missing(name)
			}
		}
	}
	// A missing plugin is off already. If the user enables it, a warning names it.
	plugins("disable-admission-plugins", o.disabledPlugins, func(string) {})
	plugins("enable-admission-plugins", o.enabledPlugins,
		func(name string) { unused = append(unused, "--enable-admission-plugins="+name) })
	for _, name := range offByDefault {
		if !slices.Contains(o.enabledPlugins, name) && !slices.Contains(o.disabledPlugins, name) {
			c.Admission.Disabled = append(c.Admission.Disabled, name)
		}
	}
	for _, name := range o.disabledPlugins {
		if slices.Contains(o.enabledPlugins, name) {
			err = errors.Join(err,
				fmt.Errorf(
					"admission plugin %q is in --enable-admission-plugins and in --disable-admission-plugins: remove it from one", name))
		}
		if slices.Contains(ours, name) {
			c.Admission.Disabled = append(c.Admission.Disabled, name)
		}
	}
	return unused, err
}

// servingFiles returns the serving certificate and key of a --cert-dir, valid for hosts. It makes them if both are
// missing.
func servingFiles(dir string, hosts ...string) (cert, key string, err error) {
	base := filepath.Join(dir, "apiserver")
	cert, key = base+".crt", base+".key"
	_, certErr := os.Stat(cert)
	_, keyErr := os.Stat(key)
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	switch {
	case noCert && noKey:
		if err := pki.WriteServing(base, hosts, time.Now()); err != nil {
			return "", "", fmt.Errorf("--cert-dir: %w: choose a writable directory", err)
		}
	case noCert != noKey:
		return "", "", fmt.Errorf("--cert-dir %s holds only one of apiserver.crt and apiserver.key: provide both or none", dir)
	}
	return cert, key, nil
}

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/doctor"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
)

func doctorCommand() *cobra.Command {
	var config bowsprit.Config
	var flags serveFlags
	var form output.Form
	cmd := &cobra.Command{
		Use:   "doctor [flags of serve]",
		Short: "Find problems of a server and its machine, and their fixes",
		Long: `Check everything that a server with these settings depends on: the settings themselves, the data directory and its disk,
the database, certificates and their expiry, the clock, the port, the members of an external etcd, objects in versions that
this release cannot read, and system limits. If the server with this data directory is running, check its health too.
The command changes nothing.`,
		Example: `  bowsprit doctor
  bowsprit doctor --config /etc/bowsprit/bowsprit.yaml
  bowsprit doctor --etcd-servers https://10.0.0.1:2379 -o json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.prepare(&config, cmd.Flags()); err != nil {
				return err
			}
			findings := doctor.Examine(cmd.Context(), doctor.Patient{
				Settings: examined(&config), Invalid: config.Validate(), Now: time.Now(), Find: embedded.Find,
			})
			return doctor.Show(cmd.OutOrStdout(), form, findings)
		},
	}
	form.Bind(cmd.Flags())
	bindFlags(cmd.Flags(), &config, &flags)
	return cmd
}

// examined are the settings that doctor compares with the machine.
func examined(c *bowsprit.Config) doctor.Settings {
	return doctor.Settings{
		DataDir: c.DataDir, BindAddress: c.Listen.BindAddress, SecurePort: c.Listen.SecurePort,
		TLSCert: c.TLS.CertFile, EtcdServers: c.Etcd.Servers, EtcdCA: c.Etcd.CAFile, EtcdCert: c.Etcd.CertFile,
		EtcdKey: c.Etcd.KeyFile, EtcdPrefix: c.Etcd.Prefix, QuotaBackendBytes: c.Etcd.QuotaBackendBytes,
	}
}

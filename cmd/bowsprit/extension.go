package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/scaffold"
)

func extensionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Begin and install extension API servers",
		Long: `Begin the project of an extension API server, and install extension API servers in a cluster. They are written with
the Go package github.com/bowsprit/bowsprit/extension, or with k8s.io/apiserver.`,
	}
	cmd.AddCommand(scaffold.Command(bowsprit.Version().Bowsprit), extensionInstallCommand())
	return cmd
}

// installation holds the values for the objects that "extension install" creates.
type installation struct {
	Name, Namespace string
	APIs            []string // group/version
	TargetPort      int
	GroupPriority   int
	VersionPriority int

	// CA, Certificate and Key are the contents of the secret, in PEM.
	CA, Certificate, Key []byte
}

func extensionInstallCommand() *cobra.Command {
	var server connect.Flags
	var in installation
	var dryRun bool
	var form output.Form
	cmd := &cobra.Command{
		Use:   "install NAME --api GROUP/VERSION",
		Short: "Create all objects that an extension API server needs in a cluster, except its pods",
		Long: `Create all objects for an extension API server called NAME, except its pods: a namespace, a certificate in the secret
NAME-tls, a service account with permission to delegate authentication and authorization, a service, and an APIService for
each version. Create the pods yourself, with the label app=NAME, the service account NAME, and the secret's tls.crt and
tls.key as --tls-cert-file and --tls-private-key-file.

Run it again to add a version, or to renew the certificate. The certificate is valid for a year and is renewed in its last
month.`,
		Example: `  bowsprit extension install ship --api sea.example.com/v1
  bowsprit extension install ship --api sea.example.com/v1 --dry-run | kubectl apply --filename -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`name the server, as in "bowsprit extension install ship --api sea.example.com/v1"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			if in.Namespace == "" {
				in.Namespace = in.Name
			}
			if err := in.check(); err != nil {
				return exit.Usage(err)
			}
			to := output.Streams{Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Form: form}
			if dryRun {
				return in.print(to)
			}
			at, err := server.Write(cmd, connect.CarriesData)
			if err != nil {
				return err
			}
			return in.install(cmd.Context(), at.Config, to)
		},
	}
	f := cmd.Flags()
	server.Bind(f)
	f.StringVar(&in.Namespace, "namespace", "", "namespace of the server (default: its name)")
	f.StringSliceVar(&in.APIs, "api", nil, "a version that it serves, such as sea.example.com/v1; may be repeated")
	f.IntVar(&in.TargetPort, "target-port", 6443, "port on which its pods listen")
	f.IntVar(&in.GroupPriority, "group-priority", 1000, "groupPriorityMinimum of the APIServices")
	f.IntVar(&in.VersionPriority, "version-priority", 15, "versionPriority of the APIServices")
	f.BoolVar(&dryRun, "dry-run", false, "print the manifests, with a new certificate, and create nothing")
	form.Bind(f)
	return cmd
}

// check validates the flags.
func (in *installation) check() error {
	if len(in.APIs) == 0 {
		return errors.New("--api is missing: name a version that the server serves, such as sea.example.com/v1")
	}
	// The name comes first: without --namespace the namespace has the same name.
	for _, label := range []struct{ of, name string }{{"NAME", in.Name}, {"--namespace", in.Namespace}} {
		if wrong := validation.IsDNS1035Label(label.name); len(wrong) > 0 {
			return fmt.Errorf("%s %q: %s", label.of, label.name, strings.Join(wrong, "; "))
		}
	}
	for _, api := range in.APIs {
		gv, err := schema.ParseGroupVersion(api)
		if err != nil || len(validation.IsDNS1123Subdomain(gv.Group)) > 0 || !strings.Contains(gv.Group, ".") ||
			len(validation.IsDNS1035Label(gv.Version)) > 0 {
			return fmt.Errorf("--api %q is not a group and a version such as sea.example.com/v1", api)
		}
	}
	if wrong := validation.IsValidPortNum(in.TargetPort); len(wrong) > 0 {
		return fmt.Errorf("--target-port %d: %s", in.TargetPort, strings.Join(wrong, "; "))
	}
	slices.Sort(in.APIs)
	in.APIs = slices.Compact(in.APIs)
	return nil
}

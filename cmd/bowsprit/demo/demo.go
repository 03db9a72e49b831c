// Package demo implements "bowsprit demo": sample objects for an empty server.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/content"
)

//go:embed crontabs.yaml
var manifests string

// Command returns "bowsprit demo".
func Command() *cobra.Command {
	var server connect.Flags
	var remove, print bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Create an example on a server, and print commands to try",
		Long: `Create an example on a server: the CronTab definition from Kubernetes' documentation, the namespace "demo" and three
CronTabs in it. The command then prints further commands to try with them. Running it again changes nothing.`,
		Example: `  bowsprit demo
  bowsprit demo --print > crontabs.yaml   # only print the manifests
  bowsprit demo --remove`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if print {
				_, err := io.WriteString(out, manifests)
				return err
			}
			to, err := server.Write(cmd, connect.ForPeople)
			if err != nil {
				return err
			}
			if remove {
				return removeFrom(cmd.Context(), to.Config, out)
			}
			return show(cmd.Context(), to, out)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&print, "print", false, "print the manifests, without a server")
	f.BoolVar(&remove, "remove", false,
		"delete the example: the definition, all CronTabs, and the namespace")
	server.Bind(f)
	return cmd
}

// next lists commands for the user to try, in the order of a story.
var next = []struct{ why, args string }{
	{"list CronTabs, in the columns of the definition", "get crontabs"},
	{"use a short name and a label", "get ct -l team=finance -o yaml"},
	{"describe the fields", "explain crontab.spec"},
	{"try a value that the schema does not allow",
		"patch ct cleanup --type=merge -p '{\"spec\":{\"replicas\":99}}'"},
	{"scale, like a Deployment", "scale ct/cleanup --replicas=2"},
	{"watch, and change something in another terminal", "get ct -w"},
}

func show(ctx context.Context, to *connect.Server, out io.Writer) error {
	if err := content.Apply(ctx, to.Config, "demo", strings.NewReader(manifests), out); err != nil {
		return err
	}
	fmt.Fprint(out, "\nTry next:\n\n")
	for _, n := range next {
		fmt.Fprintf(out, "  # %s\n  %s -n demo %s\n\n", n.why, to.Kubectl(), n.args)
	}
	_, err := fmt.Fprintf(out, "\"bowsprit demo --print\" shows the manifests, \"bowsprit demo%s --remove\" deletes their objects.\n",
		to.Flags())
	return err
}

func removeFrom(ctx context.Context, config *rest.Config, out io.Writer) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var failures []error
	for _, o := range []struct {
		name     string
		resource schema.GroupVersionResource
	}{
		{"crontabs.stable.example.com", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"}},
		{"demo", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
	} {
		err := client.Resource(o.resource).Delete(ctx, o.name, metav1.DeleteOptions{})
		switch {
		case apierrors.IsNotFound(err):
			fmt.Fprintf(out, "%s %q does not exist.\n", o.resource.Resource, o.name)
		case err != nil:
			failures = append(failures, err)
		default:
			fmt.Fprintf(out, "%s %q is deleted.\n", o.resource.Resource, o.name)
		}
	}
	return errors.Join(failures...)
}

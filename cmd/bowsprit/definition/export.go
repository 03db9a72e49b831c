package definition

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// exportFlags are the flags of "bowsprit crd export".
type exportFlags struct {
	ordinary    bool
	service, ca string
	form        output.Form
}

func exportCommand() *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export (FILE | DIRECTORY | -)...",
		Short: "Write definitions as a server stores them, or for other clusters",
		Long: `Write CustomResourceDefinitions in the form in which a Bowsprit server stores them: fields that Kubernetes lacks are
annotations and validation rules. With --ordinary the definitions have equivalents for other clusters:

- Columns with an expression get a path with the same value.
- Fields with x-bowsprit-immutable get validation rules.
- Rules for conversion get the strategy Webhook, with the service of "bowsprit convert serve".

The command lists fields without an equivalent on stderr and leaves them out: columns with a computed value, and marks of
sensitive fields. A Bowsprit server accepts the definitions, too, and uses the rules in the annotations.`,
		Example: `  bowsprit crd export --ordinary config/crd/bases > ordinary.yaml
  bowsprit kubectl get crd ships.example.com -o yaml | bowsprit crd export --ordinary -
  bowsprit crd export --ordinary crd.yaml --conversion-service=ops/convert --conversion-ca=ca.crt`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&flags.ordinary, "ordinary", false, "write equivalents for other clusters")
	f.StringVar(&flags.service, "conversion-service", "bowsprit-convert/bowsprit-convert",
		"with --ordinary: NAMESPACE/NAME of the service of \"bowsprit convert serve\"")
	f.StringVar(&flags.ca, "conversion-ca", "", "with --ordinary: a file with the authority of the service's certificate")
	flags.form.Bind(f)
	return cmd
}

// errLosses ends the command if a field has no equivalent.
var errLosses = errors.New("some fields have no equivalent on other clusters")

func (f *exportFlags) run(cmd *cobra.Command, args []string) error {
	webhook, err := f.webhook()
	if err != nil {
		return err
	}
	set, err := manifest.Load(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := set.Err(); err != nil {
		return err
	}
	items, losses := []any{}, 0
	for i := range set.Documents {
		d := &set.Documents[i]
		if d.Object["kind"] != "CustomResourceDefinition" {
			continue
		}
		if err := stored(d); err != nil {
			return err
		}
		if f.ordinary {
			for _, loss := range crd.Ordinary(d.Object, webhook) {
				losses++
				fmt.Fprintln(cmd.ErrOrStderr(), d.Problem(loss.Path, loss.Text))
			}
		}
		items = append(items, d.Object)
	}
	if len(items) == 0 {
		return fmt.Errorf("%s: no CustomResourceDefinition found", strings.Join(args, ", "))
	}
	list := object.Object{"apiVersion": "v1", "kind": "List", "items": items}
	text := func(out io.Writer) error { return documents(out, items) }
	if err := f.form.Print(cmd.OutOrStdout(), list, text); err != nil {
		return err
	}
	if losses > 0 {
		return exit.No(errLosses)
	}
	return nil
}

// documents writes objects as YAML.
func documents(out io.Writer, items []any) error {
	for i, item := range items {
		text, err := yaml.Marshal(item)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// stored brings a definition into the form in which a server stores it, without the fields that the server sets. The
// error is the first reason of a server against the definition.
func stored(d *manifest.Document) error {
	copied := *d
	copied.Object = codec.CloneObject(d.Object)
	if found := judge(&copied); len(found.Errors) > 0 {
		first := found.Errors[0]
		return d.Problem(first.Path, fmt.Sprintf("a server would refuse it: %s (bowsprit crd lint lists all reasons)",
			first.Text))
	}
	if d.Object["apiVersion"] != "apiextensions.k8s.io/v1" {
		return d.Problem("apiVersion", "export reads definitions of apiextensions.k8s.io/v1 only")
	}
	if _, err := crd.Rules().Decode(d.Object); err != nil {
		return d.Problem("", err.Error())
	}
	delete(d.Object, "status")
	meta := object.Meta(d.Object)
	for _, name := range []string{
		"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
	} {
		delete(meta, name)
	}
	if annotations := object.Map(meta, "annotations"); annotations != nil {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		object.SetOrDelete(meta, "annotations", annotations, len(annotations) > 0)
	}
	return nil
}

// webhook returns the webhook of "bowsprit convert serve".
func (f *exportFlags) webhook() (object.Object, error) {
	namespace, name, ok := strings.Cut(f.service, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 {
		return nil, exit.Usage(fmt.Errorf("--conversion-service=%s: use NAMESPACE/NAME", f.service))
	}
	client := object.Object{"service": object.Object{
		"namespace": namespace, "name": name, "path": "/convert", "port": int64(443),
	}}
	if f.ca != "" {
		bundle, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--conversion-ca: %w", err)
		}
		client["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
	}
	return object.Object{"conversionReviewVersions": []any{"v1"}, "clientConfig": client}, nil
}

package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
)

// diffFlags are the flags of "bowsprit crd diff".
type diffFlags struct {
	server         connect.Flags
	live           bool
	policy, sarif  string
	levels         []string
	annotateGitHub bool
	form           output.Form
}

func diffCommand() *cobra.Command {
	var flags diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | diff --live NEW...",
		Short: "Report changes of definitions that can break clients or stored objects",
		Long: `Compare CustomResourceDefinitions of two files or directories, or with --live the definitions of a server with files, and
report the changes that can break clients or stored objects. The server is Bowsprit or any other cluster. With --live the
command also reads the stored objects of changed definitions, and reports how many become invalid or lose fields.

Each finding has a class, and each class a level: error, warning or off. The annotation bowsprit.dev/crd-change-policy of
the new definition changes the levels, and exempts findings with a reason. So does a policy file, which takes precedence:

  classes: {default: off, pattern: warning}
  exemptions:
  - {class: existingFieldRemoval, version: v1, path: spec.port, reason: "never released"}`,
		Example: `  git show HEAD:crd.yaml | bowsprit crd diff - crd.yaml
  bowsprit crd diff --live config/crd/bases
  bowsprit crd diff old new --policy=policy.yaml --sarif=crd.sarif`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if flags.live {
			return arguments.Several("file or directory")(cmd, args)
		}
		if len(args) != 2 {
			return exit.Usage(errors.New("name two files or directories, the old and the new one, or use --live"))
		}
		return nil
	}
	f := cmd.Flags()
	f.BoolVar(&flags.live, "live", false, "compare with the definitions of a server, and check its objects")
	f.StringVar(&flags.policy, "policy", "", "a file with levels of classes and exemptions")
	f.StringArrayVar(&flags.levels, "level", nil, "CLASS=LEVEL: report a class as error, warning or off; repeatable")
	f.StringVar(&flags.sarif, "sarif", "", "also write the findings to this file, in SARIF 2.1.0")
	f.BoolVar(&flags.annotateGitHub, "github-annotations", false,
		"also print the findings to stderr as commands of GitHub Actions")
	flags.form.Bind(f)
	flags.server.Bind(f)
	return cmd
}

func (f *diffFlags) run(cmd *cobra.Command, args []string) error {
	policy, err := f.readPolicy()
	if err != nil {
		return err
	}
	d := &difference{policy: policy, exempted: map[int]bool{}}
	if f.live {
		err = d.live(cmd, &f.server, args)
	} else {
		err = d.files(cmd.InOrStdin(), args[0], args[1])
	}
	if err != nil {
		return err
	}
	result := d.result()
	if f.sarif != "" {
		if err := writeSARIF(f.sarif, result); err != nil {
			return err
		}
	}
	if f.annotateGitHub {
		annotate(cmd.ErrOrStderr(), result)
	}
	if err := f.form.Print(cmd.OutOrStdout(), result, result.print); err != nil {
		return err
	}
	if result.Errors > 0 {
		return exit.No(errBreaking)
	}
	return nil
}

// errBreaking ends the command if a finding is an error.
var errBreaking = errors.New("some changes can break clients or stored objects")

// readPolicy reads the policy file, and the levels of the command line.
func (f *diffFlags) readPolicy() (*compat.Policy, error) {
	policy := &compat.Policy{}
	if f.policy != "" {
		text, err := os.ReadFile(f.policy)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		if policy, err = compat.ReadPolicy(text); err != nil {
			return nil, fmt.Errorf("--policy=%s: %w", f.policy, err)
		}
	}
	if policy.Classes == nil {
		policy.Classes = map[compat.Class]compat.Level{}
	}
	for _, word := range f.levels {
		name, level, _ := strings.Cut(word, "=")
		class := compat.Class(name)
		if err := errors.Join(compat.CheckClass(class), compat.CheckLevel(compat.Level(level))); err != nil {
			return nil, exit.Usage(fmt.Errorf("--level=%s: %w", word, err))
		}
		policy.Classes[class] = compat.Level(level)
	}
	return policy, nil
}

// state is a definition of a file, or of a server.
type state struct {
	*apiextensionsv1.CustomResourceDefinition
	document *manifest.Document // nil for a server's
}

// load returns the definitions of files by name. A definition that cannot be read is an error: its changes would be
// missing.
func load(paths []string, stdin io.Reader) (map[string]state, error) {
	set, err := manifest.Load(paths, stdin)
	if err != nil {
		return nil, err
	}
	all, errs := map[string]state{}, slices.Clone(set.Problems)
	for i := range set.Documents {
		d := &set.Documents[i]
		if d.Object["kind"] != "CustomResourceDefinition" {
			continue
		}
		if d.Object["apiVersion"] != apiextensionsv1.SchemeGroupVersion.String() {
			errs = append(errs, d.Problem("apiVersion", fmt.Sprintf("diff reads definitions of %s only",
				apiextensionsv1.SchemeGroupVersion)))
			continue
		}
		if err := d.CheckName(); err != nil {
			errs = append(errs, err)
			continue
		}
		def, err := crd.Decode(d.Object)
		if err != nil {
			errs = append(errs, d.Problem("", err.Error()))
			continue
		}
		if other, ok := all[def.Name]; ok {
			errs = append(errs, d.Problem("metadata.name", fmt.Sprintf("%s is defined in %s, too", def.Name,
				other.document.File)))
			continue
		}
		crd.SetDefaults(def)
		all[def.Name] = state{def, d}
	}
	if len(all) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: no CustomResourceDefinition found", strings.Join(paths, ", ")))
	}
	return all, exit.List(errors.Join(errs...))
}

// difference collects the changes of definitions.
type difference struct {
	policy   *compat.Policy
	exempted map[int]bool // the exemptions that matched
	changes  []change
}

// files compares the definitions of two paths.
func (d *difference) files(stdin io.Reader, before, after string) error {
	if before == "-" && after == "-" {
		return exit.Usage(errors.New("only one of OLD and NEW can be stdin"))
	}
	was, err := load([]string{before}, stdin)
	if err != nil {
		return err
	}
	is, err := load([]string{after}, stdin)
	if err != nil {
		return err
	}
	for name, old := range was {
		found := compat.Removed(old.CustomResourceDefinition)
		now, ok := is[name]
		if ok {
			found = compat.Compare(old.CustomResourceDefinition, now.CustomResourceDefinition)
		} else {
			now = state{old.CustomResourceDefinition, nil}
		}
		if err := d.add(now, found); err != nil {
			return err
		}
	}
	return nil
}

// live compares the definitions of a server with the definitions of files.
func (d *difference) live(cmd *cobra.Command, flags *connect.Flags, paths []string) error {
	is, err := load(paths, cmd.InOrStdin())
	if err != nil {
		return err
	}
	to, err := flags.Read(cmd)
	if err != nil {
		return err
	}
	s, err := newSource(to.Config)
	if err != nil {
		return err
	}
	for _, now := range is {
		if err := d.addLive(cmd.Context(), s, now); err != nil {
			return fmt.Errorf("%s: %w", now.Name, err)
		}
	}
	return nil
}

// addLive adds the changes of one definition, and the findings about its objects.
func (d *difference) addLive(ctx context.Context, s *source, now state) error {
	old, err := s.definition(ctx, now.Name)
	if err != nil || old == nil { // a new definition breaks nothing
		return err
	}
	objects, err := s.objects(ctx, old, now.CustomResourceDefinition)
	if err != nil {
		return err
	}
	return d.add(now, append(compat.Compare(old, now.CustomResourceDefinition), objects...))
}

// add adds the findings for a definition, with the levels of the policy and of the definition's annotation.
func (d *difference) add(now state, found []compat.Finding) error {
	own, err := compat.ReadOwn(now.Annotations[compat.Annotation])
	if text, ok := now.Annotations[compat.Annotation]; ok && err != nil {
		return fmt.Errorf("%s: annotation %s=%q: %w", now.Name, compat.Annotation, text, err)
	} else if !ok {
		own = &compat.Own{}
	}
	policy := d.policy.Over(&own.Policy)
	c := change{Name: now.Name, Findings: []judged{}}
	if now.document != nil {
		c.File = now.document.File
	}
	for i := range found {
		f := &found[i]
		level, exemption := policy.Level(now.Name, f)
		one := judged{Finding: *f, Level: level}
		switch {
		case exemption >= 0:
			d.exempted[exemption] = true
			one.Exempted = policy.Exemptions[exemption].Reason
		case level == compat.Off:
			continue
		}
		if now.document != nil {
			one.Line = now.document.Line(f.Location)
		}
		c.Findings = append(c.Findings, one)
	}
	d.changes = append(d.changes, c)
	return nil
}

// result returns the changes by name.
func (d *difference) result() *diffResult {
	r := &diffResult{Definitions: d.changes}
	slices.SortFunc(r.Definitions, func(a, b change) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range r.Definitions {
		for i := range c.Findings {
			switch f := &c.Findings[i]; {
			case f.Exempted != "":
				r.Exempted++
			case f.Level == compat.Error:
				r.Errors++
			default:
				r.Warnings++
			}
		}
	}
	for i, e := range d.policy.Exemptions {
		if !d.exempted[i] {
			r.Unused = append(r.Unused, e)
		}
	}
	if r.Definitions == nil {
		r.Definitions = []change{}
	}
	return r
}

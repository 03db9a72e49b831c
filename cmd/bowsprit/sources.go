package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// The settings of "serve" come from flags, environment variables and a file. A flag overrides the environment, and the
// environment overrides the file. All three use the names of the flags.

// configFlag names the file.
const configFlag = "config"

// sources records where the values of flags outside the command line come from.
type sources struct {
	file string
	// from maps the names of flags to the variable or file that has set them.
	from map[string]string
	// strange has a warning for each variable that has our prefix and is not a setting.
	strange []string
}

func (s *sources) bind(f *pflag.FlagSet) {
	f.StringVar(&s.file, configFlag, "",
		"YAML file with settings, named like the flags; environment variables such as "+variableOf("secure-port")+
			" take precedence over it, flags over both")
}

// apply sets the flags that the command line omits. Its error lists all problems, each with its place.
func (s *sources) apply(f *pflag.FlagSet, environment []string) error {
	s.from = map[string]string{}
	given := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	variables, strange := variablesOf(f, environment)
	s.strange = strange
	var problems []error
	if v, ok := variables[configFlag]; ok && !given[configFlag] {
		s.file = v
		s.from[configFlag] = variableOf(configFlag)
	}
	file, err := s.read(f)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		name := flag.Name
		if given[name] || name == configFlag || overruled(name, given) {
			return
		}
		var err error
		if text, ok := variables[name]; ok {
			s.from[name] = variableOf(name)
			err = f.Set(name, text)
		} else if value, ok := file[name]; ok {
			s.from[name] = s.file
			err = setValue(f, flag, value)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", s.from[name], name, cause(err)))
		}
	})
	return errors.Join(problems...)
}

// overruled reports whether the command line sets the same thing, the place of the data, by another flag.
func overruled(name string, given map[string]bool) bool {
	return name == "data-dir" && given["ephemeral"] || name == "ephemeral" && given["data-dir"]
}

// cause returns a flag's objection to a value, without pflag's words about flags.
func cause(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.Unwrap() != nil {
		return fmt.Errorf("%q: %w", invalid.GetValue(), invalid.Unwrap())
	}
	return err
}

// variablePrefix begins the names of all environment variables that the program reads.
const variablePrefix = "BOWSPRIT_"

// isSetting reports whether an environment variable is a setting of "bowsprit serve".
func isSetting(variable string) bool {
	if !strings.HasPrefix(variable, variablePrefix) {
		return false
	}
	found := false
	serveCommand().Flags().VisitAll(func(f *pflag.Flag) { found = found || variableOf(f.Name) == variable })
	return found
}

// variableOf returns the name of the environment variable of a flag.
func variableOf(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// variablesOf returns the values in the environment by the names of flags. strange lists other variables with the
// prefix, which may be mistakes.
func variablesOf(f *pflag.FlagSet, environment []string) (values map[string]string, strange []string) {
	values, flags := map[string]string{}, map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) { flags[variableOf(flag.Name)] = flag.Name })
	for _, entry := range environment {
		variable, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, variablePrefix) {
			continue
		}
		if name, ok := flags[variable]; ok {
			values[name] = value
		} else {
			strange = append(strange, fmt.Sprintf("the environment variable %s is not a setting%s", variable,
				near(variable, slices.Collect(maps.Keys(flags)))))
		}
	}
	slices.Sort(strange)
	return values, strange
}

// read returns the settings in the file as JSON values. Numbers keep their notation.
func (s *sources) read(f *pflag.FlagSet) (map[string]any, error) {
	if s.file == "" {
		return nil, nil
	}
	text, err := files.ReadAll(s.file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", configFlag, err)
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", s.file, err)
	}
	var settings map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&settings); err != nil {
		return nil, fmt.Errorf("%s is not a mapping of settings such as \"secure-port: 6443\"", s.file)
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name == configFlag || !slices.Contains(names, name) {
			problems = append(problems, fmt.Errorf("%s: %s is not a setting%s", s.file, name, near(name, names)))
		}
	}
	return settings, errors.Join(problems...)
}

// near suggests the names that the user may have meant.
func near(wrong string, names []string) string {
	cmd := &cobra.Command{Use: "x", SuggestionsMinimumDistance: 2}
	for _, name := range names {
		cmd.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if meant := cmd.SuggestionsFor(wrong); len(meant) > 0 {
		return fmt.Sprintf("; did you mean %s?", strings.Join(meant, " or "))
	}
	return `; "bowsprit serve --help" lists them`
}

// setValue sets a flag to a value of the file. A list sets a flag with several values, a mapping a flag with pairs.
func setValue(f *pflag.FlagSet, flag *pflag.Flag, value any) error {
	several, isSeveral := flag.Value.(pflag.SliceValue)
	switch v := value.(type) {
	case nil:
		return errors.New("has no value; leave the setting out for its default")
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			text, ok := scalar(item)
			if !ok {
				return errors.New("is not a list of words or numbers")
			}
			items[i] = text
		}
		if !isSeveral {
			return fmt.Errorf("is a list, but the setting is one value of type %s", flag.Value.Type())
		}
		flag.Changed = true
		return several.Replace(items)
	case map[string]any:
		return setPairs(f, flag, v)
	}
	text, _ := scalar(value)
	return f.Set(flag.Name, text)
}

// setPairs sets a flag of pairs, which takes them one after the other, from a mapping.
func setPairs(f *pflag.FlagSet, flag *pflag.Flag, pairs map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		text, ok := scalar(pairs[key])
		if !ok {
			return fmt.Errorf("%s is not a word or a number", key)
		}
		if err := f.Set(flag.Name, key+"="+text); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a value other than a list or mapping.
func scalar(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool, json.Number:
		return fmt.Sprint(v), true
	}
	return "", false
}

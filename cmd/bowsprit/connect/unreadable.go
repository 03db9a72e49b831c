package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"k8s.io/client-go/tools/clientcmd"
)

// yamlLine matches the place and the reason in an error about YAML.
var yamlLine = regexp.MustCompile(`yaml: (line \d+): (.*)`)

// fileError matches the reason in an error about a file, which client-go returns as a text.
var fileError = regexp.MustCompile(`(?:open|read|stat|lstat) [^:]+: ([a-z ]+)\]?$`)

// unreadable replaces client-go's words about a kubeconfig, which name Go types and variables that Bowsprit ignores. of
// names the file.
func unreadable(of string, err error) error {
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("%s: %w", of, err)
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("%s selects no server: it has no current context with a cluster", of)
	case clientcmd.IsConfigurationInvalid(err):
		return fmt.Errorf("%s: %w", of, err)
	}
	if m := fileError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s: %s", of, m[1])
	}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s is damaged, it is not a kubeconfig: %s: %s", of, m[1], m[2])
	}
	return fmt.Errorf("%s is damaged, it is not a kubeconfig", of)
}

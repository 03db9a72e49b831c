package aspod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// environment returns the variables of the container, in order. A later variable may refer to an earlier one.
//
// Rule: Container.env and envFrom of the API reference, and "Define Dependent Environment Variables".
func (p *pod) environment(ctx context.Context, client kubernetes.Interface) (variables, error) {
	all := variables{}
	for _, from := range p.container.EnvFrom {
		data, err := p.allOf(ctx, client, from)
		if err != nil {
			return nil, fmt.Errorf("envFrom of container %s: %w", p.container.Name, err)
		}
		for key, value := range data {
			if name := from.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
				all[name] = value
			}
		}
	}
	all["KUBERNETES_SERVICE_HOST"], all["KUBERNETES_SERVICE_PORT"] = p.host, p.port
	all["POD_NAMESPACE"], all["HOSTNAME"] = p.namespace, p.name
	for _, v := range p.container.Env {
		value, found, err := p.value(ctx, client, v, all)
		if err != nil {
			return nil, fmt.Errorf("variable %s of container %s: %w", v.Name, p.container.Name, err)
		}
		if found {
			all[v.Name] = value
		}
	}
	return all, nil
}

// variables are environment variables by name.
type variables map[string]string

// over returns the variables of this process with v on top. The process's own way to a server is left out, so that the
// program finds its in-cluster configuration.
func (v variables) over(environment []string) []string {
	out := slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := v[name]
		return replaced || name == "KUBECONFIG" || strings.HasPrefix(name, "KUBERNETES_") || name == stageVariable
	})
	for name, value := range v {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// value returns the value of one variable. found is false for an optional source that is missing.
func (p *pod) value(ctx context.Context, client kubernetes.Interface, v corev1.EnvVar, known variables) (
	value string, found bool, err error,
) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return expand(v.Value, known), true, nil
	case from.FieldRef != nil:
		value, err = p.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = p.resource(from.ResourceFieldRef)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		s, err := client.CoreV1().Secrets(p.namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		data, ok := s.Data[ref.Key]
		if !ok {
			return "", false, missingKey("Secret", ref.Name, ref.Key, ref.Optional)
		}
		return string(data), true, nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		m, err := client.CoreV1().ConfigMaps(p.namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		data, ok := m.Data[ref.Key]
		if !ok {
			return "", false, missingKey("ConfigMap", ref.Name, ref.Key, ref.Optional)
		}
		return data, true, nil
	}
	return "", false, errors.New("its source is not supported: give the variable a value in the manifest")
}

// missing returns err, or nil for a missing object that is optional.
func missing(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

// missingKey returns the error for a missing key of an object, or nil if the key is optional.
func missingKey(kind, name, key string, optional *bool) error {
	if optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("%s %s has no key %s", kind, name, key)
}

// allOf returns the data of an envFrom source.
func (p *pod) allOf(ctx context.Context, client kubernetes.Interface, from corev1.EnvFromSource) (
	map[string]string, error,
) {
	switch {
	case from.SecretRef != nil:
		s, err := client.CoreV1().Secrets(p.namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, from.SecretRef.Optional)
		}
		data := map[string]string{}
		for key, value := range s.Data {
			data[key] = string(value)
		}
		return data, nil
	case from.ConfigMapRef != nil:
		m, err := client.CoreV1().ConfigMaps(p.namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, from.ConfigMapRef.Optional)
		}
		return m.Data, nil
	}
	return nil, nil
}

// resource returns a limit or request of a container, in units of the divisor, rounded up. A limit that the container
// omits is unknown: no node bounds it.
func (p *pod) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	list := p.container.Resources.Requests
	name, ok := strings.CutPrefix(ref.Resource, "requests.")
	if !ok {
		list = p.container.Resources.Limits
		name, ok = strings.CutPrefix(ref.Resource, "limits.")
	}
	quantity, found := list[corev1.ResourceName(name)]
	if !ok || !found {
		return "", fmt.Errorf("the container has no %s: set it in the manifest", ref.Resource)
	}
	divisor := ref.Divisor.MilliValue()
	if ref.Divisor.IsZero() {
		divisor = 1000
	}
	return strconv.FormatInt((quantity.MilliValue()+divisor-1)/divisor, 10), nil
}

// expand replaces references $(NAME) to known variables. $$ stands for $; an unknown reference stays.
func expand(text string, known variables) string {
	var b strings.Builder
	for text != "" {
		before, after, ok := strings.Cut(text, "$")
		b.WriteString(before)
		if !ok {
			break
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		switch value, found := known[name]; {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "(") && closed && found:
			b.WriteString(value)
			text = rest
		default:
			b.WriteByte('$')
			text = after
		}
	}
	return b.String()
}

// commandLine returns the program with its arguments: given, or the container's if only a program is given.
func (p *pod) commandLine(given []string, known variables) []string {
	if len(given) > 1 {
		return given
	}
	line := slices.Clone(given)
	for _, arg := range p.container.Args {
		line = append(line, expand(arg, known))
	}
	return line
}

// stageVariable marks a process that this command has started for itself. The program does not inherit it.
const stageVariable = "BOWSPRIT_RUN_STAGE"

func stage() string { return os.Getenv(stageVariable) }

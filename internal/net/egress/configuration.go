package egress

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
)

// Configuration is an EgressSelectorConfiguration of apiserver.k8s.io: the connection to each network.
type Configuration = apiserver.EgressSelectorConfiguration

// Read reads a file with an EgressSelectorConfiguration, of v1beta1 or v1alpha1, and checks it. The texts of errors are
// kube-apiserver's.
func Read(file string) (*Configuration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: unable to read egress selector configuration "+
			"from %q [%w]", file, err)
	}
	c, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: %w", err)
	}
	if errs := Validate(c); len(errs) > 0 {
		return nil, fmt.Errorf("failed to validate egress selector configuration: %w", errs.ToAggregate())
	}
	return c, nil
}

// decode decodes a configuration strictly. The deprecated name "master" becomes "controlplane".
func decode(data []byte) (*Configuration, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	obj, kind, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder().
		Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	c, ok := obj.(*Configuration)
	if !ok {
		return nil, fmt.Errorf("unexpected config type: %v", kind)
	}
	return c, nil
}

// names are the sorted names of the networks.
var names = []string{string(Cluster), string(ControlPlane), string(Etcd)}

// Validate returns the errors in a configuration: kube-apiserver's errors, in its order, with its paths.
func Validate(c *Configuration) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("service", "connection")
	for i := range c.EgressSelections {
		errs = append(errs, validateConnection(path, &c.EgressSelections[i].Connection)...)
	}
	var seen []string
	for i := range c.EgressSelections {
		name := strings.ToLower(c.EgressSelections[i].Name)
		switch {
		case slices.Contains(seen, name):
			errs = append(errs, field.Duplicate(path.Index(i), name))
			continue
		case !slices.Contains(names, name):
			errs = append(errs, field.NotSupported(path, name, names))
		}
		seen = append(seen, name)
	}
	return errs
}

func validateConnection(path *field.Path, c *apiserver.Connection) field.ErrorList {
	t := c.Transport
	switch c.ProxyProtocol {
	case apiserver.ProtocolDirect:
		if t != nil {
			return field.ErrorList{
				field.Invalid(path.Child("transport"), "direct", "config must be absent for direct connect"),
			}
		}
		return nil
	case apiserver.ProtocolHTTPConnect:
		switch {
		case t == nil:
			return field.ErrorList{field.Required(path.Child("transport"), "transport must be set for HTTPConnect")}
		case t.TCP != nil && t.UDS != nil:
			return field.ErrorList{field.Invalid(path.Child("tcp"), t.TCP, "TCP and UDS cannot both be set")}
		case t.TCP != nil:
			return validateTCP(path, t.TCP)
		case t.UDS != nil:
			return validateUDS(path, t.UDS)
		}
		return field.ErrorList{field.Required(path.Child("tcp"), "One of TCP or UDS must be set")}
	case apiserver.ProtocolGRPC:
		switch {
		case t == nil:
			return field.ErrorList{field.Required(path.Child("transport"), "transport must be set for GRPC")}
		case t.UDS != nil:
			return validateUDS(path, t.UDS)
		}
		return field.ErrorList{field.Required(path.Child("uds"), "UDS must be set with GRPC")}
	}
	return field.ErrorList{field.NotSupported(path.Child("protocol"), c.ProxyProtocol, []string{
		string(apiserver.ProtocolDirect), string(apiserver.ProtocolHTTPConnect), string(apiserver.ProtocolGRPC),
	})}
}

func validateUDS(path *field.Path, c *apiserver.UDSTransport) field.ErrorList {
	if c.UDSName == "" {
		return field.ErrorList{field.Invalid(path.Child("udsName"), "nil", "must be present for UDS connections")}
	}
	return nil
}

func validateTCP(path *field.Path, c *apiserver.TCPTransport) field.ErrorList {
	switch {
	case strings.HasPrefix(c.URL, "https://"):
		return validateTLS(path.Child("tlsConfig"), c.TLSConfig)
	case !strings.HasPrefix(c.URL, "http://"):
		return field.ErrorList{
			field.Invalid(path.Child("url"), c.URL, "supported connection protocols are http:// and https://"),
		}
	case c.TLSConfig != nil:
		return field.ErrorList{
			field.Invalid(path.Child("tlsConfig"), "nil", "config must not be present when using HTTP"),
		}
	}
	return nil
}

func validateTLS(path *field.Path, c *apiserver.TLSConfig) (errs field.ErrorList) {
	if c == nil {
		return field.ErrorList{field.Required(path, "TLSConfig must be present when using HTTPS")}
	}
	if c.CABundle != "" && !exists(c.CABundle) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), c.CABundle, "TLS config ca bundle does not exist"))
	}
	switch {
	case c.ClientCert == "":
		errs = append(errs, field.Invalid(path.Child("clientCert"), "nil", "Using TLS requires clientCert"))
	case !exists(c.ClientCert):
		errs = append(errs, field.Invalid(path.Child("clientCert"), c.ClientCert, "TLS client cert does not exist"))
	}
	switch {
	case c.ClientKey == "":
		errs = append(errs, field.Invalid(path.Child("clientKey"), "nil", "Using TLS requires requires clientKey"))
	case !exists(c.ClientKey):
		errs = append(errs, field.Invalid(path.Child("clientKey"), c.ClientKey, "TLS client key does not exist"))
	}
	return errs
}

// exists reports whether a file exists and is accessible.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

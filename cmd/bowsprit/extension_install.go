package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

//go:embed extension.yaml
var extensionManifests string

// extensionManager is the field manager of the installed objects.
const extensionManager = "bowsprit-extension"

// renewBefore is how long before the end of a certificate a new one is made.
const renewBefore = 30 * 24 * time.Hour

// manifests returns the objects to install, in the order of their creation.
func (in *installation) manifests() ([]byte, error) {
	functions := template.FuncMap{
		"base64": base64.StdEncoding.EncodeToString,
		"group":  path.Dir, "version": path.Base,
		"apiName": func(api string) string { return path.Base(api) + "." + path.Dir(api) },
	}
	var out bytes.Buffer
	err := template.Must(template.New("").Funcs(functions).Parse(extensionManifests)).Execute(&out, in)
	return out.Bytes(), err
}

// objects returns the manifests as objects.
func (in *installation) objects() (all []*unstructured.Unstructured, err error) {
	text, err := in.manifests()
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
}

// print prints the manifests, with a new certificate: as documents of YAML, or as one List for programs.
func (in *installation) print(to output.Streams) error {
	if err := in.certify(); err != nil {
		return err
	}
	objects, err := in.objects()
	if err != nil {
		return err
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
	return to.Form.Print(to.Out, list, func(out io.Writer) error {
		text, err := in.manifests()
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	})
}

// installed is an object of an installation, and its change.
type installed struct {
	Resource  string `json:"resource"` // such as "apiservices.apiregistration.k8s.io"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Result    string `json:"result"` // created, configured or unchanged
}

// install creates missing objects, corrects the others, and prints a line for each object.
func (in *installation) install(ctx context.Context, config *rest.Config, to output.Streams) error {
	if err := in.keepCertificate(ctx, config, time.Now()); err != nil {
		return err
	}
	objects, err := in.objects()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	done := []installed{}
	var failure error
	for _, obj := range objects {
		one, err := apply(ctx, client, obj)
		if err != nil {
			failure = err
			break
		}
		done = append(done, one)
	}
	err = to.Form.Print(to.Out, done, func(out io.Writer) error {
		for _, one := range done {
			if _, err := fmt.Fprintf(out, "%s/%s %s\n", one.Resource, one.Name, one.Result); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(failure, err); err != nil {
		return err
	}
	fmt.Fprintf(to.Notes, `Now run the server: pods in the namespace %s with the label app=%s and the service account %s, and
the secret %s-tls mounted for --tls-cert-file and --tls-private-key-file. They must listen on port %d.
`, in.Namespace, in.Name, in.Name, in.Name, in.TargetPort)
	return nil
}

// apply creates or corrects one object.
func apply(ctx context.Context, client dynamic.Interface, obj *unstructured.Unstructured) (installed, error) {
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	objects := dynamic.ResourceInterface(client.Resource(plural).Namespace(obj.GetNamespace()))
	done := installed{plural.GroupResource().String(), obj.GetNamespace(), obj.GetName(), "configured"}
	before, err := objects.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return done, fmt.Errorf("%s/%s: %w", done.Resource, done.Name, err)
	}
	after, err := objects.Apply(ctx, obj.GetName(), obj,
		metav1.ApplyOptions{FieldManager: extensionManager, Force: true})
	if err != nil {
		return done, fmt.Errorf("%s/%s: %w", done.Resource, done.Name, err)
	}
	switch {
	case before == nil:
		done.Result = "created"
	case before.GetResourceVersion() == after.GetResourceVersion():
		done.Result = "unchanged"
	}
	return done, nil
}

// keepCertificate takes the certificate from the secret if it stays valid for renewBefore, else it makes a new one.
func (in *installation) keepCertificate(ctx context.Context, config *rest.Config, now time.Time) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	secret, err := client.CoreV1().Secrets(in.Namespace).Get(ctx, in.Name+"-tls", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return in.certify()
	case err != nil:
		return fmt.Errorf("secrets/%s-tls: %w", in.Name, err)
	}
	in.CA, in.Certificate, in.Key = secret.Data["ca.crt"], secret.Data[corev1.TLSCertKey],
		secret.Data[corev1.TLSPrivateKeyKey]
	if in.certified(now.Add(renewBefore)) {
		return nil
	}
	return in.certify()
}

// host is the name by which the API server connects to the extension server.
func (in *installation) host() string { return in.Name + "." + in.Namespace + ".svc" }

// certified reports whether the certificate is good at a time.
func (in *installation) certified(at time.Time) bool {
	pair, err := tls.X509KeyPair(in.Certificate, in.Key)
	if err != nil {
		return false
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(in.CA)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: in.host(), Roots: authorities, CurrentTime: at})
	return err == nil
}

// certify makes an authority and a certificate from it that is valid for a year. It discards the authority's key.
func (in *installation) certify() error {
	chain, key, err := cert.GenerateSelfSignedCertKey(in.host(), nil, []string{in.Name + "." + in.Namespace})
	if err != nil {
		return fmt.Errorf("create a certificate: %w", err)
	}
	_, authority := pem.Decode(chain)
	in.CA, in.Certificate, in.Key = authority, chain, key
	return nil
}

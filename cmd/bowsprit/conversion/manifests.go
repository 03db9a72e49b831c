package conversion

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

//go:embed manifests.yaml
var manifests string

// deployment holds the flags of --manifests.
type deployment struct {
	Name, Namespace, Image string
	Replicas               int
}

func (d *deployment) bind(f *pflag.FlagSet) {
	f.StringVar(&d.Name, "name", "bowsprit-convert", "with --manifests: name of the Deployment and the Service")
	f.StringVar(&d.Namespace, "namespace", "bowsprit-convert", "with --manifests: namespace of the objects")
	f.StringVar(&d.Image, "image", "", "with --manifests: image with bowsprit as its entrypoint")
	f.IntVar(&d.Replicas, "replicas", 2, "with --manifests: number of pods")
}

// maxDefinitions bounds the definitions in the ConfigMap: Kubernetes accepts 1 MiB.
const maxDefinitions = 1<<20 - 8<<10

// printed is the data of the template manifests.yaml.
type printed struct {
	*deployment
	Certificate, Key, Definitions []byte
	Digest                        string
	CRDs                          []string // with the webhook
}

func (d *deployment) check() error {
	if d.Image == "" {
		return errors.New("--image: name an image with bowsprit as its entrypoint")
	}
	for _, flag := range [][2]string{{"--name", d.Name}, {"--namespace", d.Namespace}} {
		if problems := validation.IsDNS1123Label(flag[1]); len(problems) > 0 {
			return fmt.Errorf("%s: %s", flag[0], problems[0])
		}
	}
	if d.Replicas < 1 {
		return fmt.Errorf("--replicas: %d is less than 1", d.Replicas)
	}
	return nil
}

// print prints the objects for a cluster.
func (d *deployment) print(out io.Writer, all []*definition) error {
	if err := d.check(); err != nil {
		return err
	}
	p := printed{deployment: d}
	var authority []byte
	var err error
	if p.Certificate, p.Key, authority, err = newCertificate(d.Name + "." + d.Namespace + ".svc"); err != nil {
		return err
	}
	for _, one := range all {
		text, err := yaml.Marshal(one.object)
		if err != nil {
			return err
		}
		p.Definitions = append(append(p.Definitions, "---\n"...), text...)
		hooked, err := yaml.Marshal(d.hooked(one.object, authority))
		if err != nil {
			return err
		}
		p.CRDs = append(p.CRDs, strings.TrimSpace(string(hooked)))
	}
	if len(p.Definitions) > maxDefinitions {
		return fmt.Errorf("the definitions have %d bytes, a ConfigMap holds %d: run the command for some files at a time, "+
			"with another --name", len(p.Definitions), maxDefinitions)
	}
	p.Digest = fmt.Sprintf("%x", sha256.Sum256(p.Definitions))[:16]
	functions := template.FuncMap{"base64": base64.StdEncoding.EncodeToString}
	var text bytes.Buffer
	if err := template.Must(template.New("").Funcs(functions).Parse(manifests)).Execute(&text, p); err != nil {
		return err
	}
	_, err = out.Write(append(bytes.TrimSpace(text.Bytes()), '\n'))
	return err
}

// hooked returns a definition with the webhook. The annotation stays: a Bowsprit server uses the rules.
func (d *deployment) hooked(definition object.Object, authority []byte) object.Object {
	out := codec.CloneObject(definition)
	object.Map(out, "spec")["conversion"] = object.Object{
		"strategy": "Webhook",
		"webhook": object.Object{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": object.Object{
				"caBundle": base64.StdEncoding.EncodeToString(authority),
				"service": object.Object{
					"name": d.Name, "namespace": d.Namespace, "path": "/convert", "port": int64(443),
				},
			},
		},
	}
	delete(out, "status")
	return out
}

// newCertificate makes a certificate for a host, its key, and the authority that clients trust.
func newCertificate(host string) (certificate, key, authority []byte, err error) {
	dir, err := os.MkdirTemp("", "bowsprit-convert-")
	if err != nil {
		return nil, nil, nil, err
	}
	defer os.RemoveAll(dir)
	if err := pki.WriteServing(filepath.Join(dir, "tls"), []string{host}, time.Now()); err != nil {
		return nil, nil, nil, err
	}
	if certificate, err = os.ReadFile(filepath.Join(dir, "tls.crt")); err != nil {
		return nil, nil, nil, err
	}
	if key, err = os.ReadFile(filepath.Join(dir, "tls.key")); err != nil {
		return nil, nil, nil, err
	}
	for rest := certificate; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		authority = pem.EncodeToMemory(block) // the last one
	}
	return certificate, key, authority, nil
}

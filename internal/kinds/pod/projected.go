package pod

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

const tokenPath rule.Exception = "a token is written below its volume"

// projection is the validation of a projected volume with sources that share one tree of files.
type projection struct {
	*rule.Validation
	path  *field.Path // of the volume
	taken map[string]bool
}

func projected(val *rule.Validation, p rule.Value) {
	pr := &projection{val, p.Path, map[string]bool{}}
	for i, s := range rule.Objects(p.Object()["sources"]) {
		path := p.Path.Child("sources").Index(i)
		n := 0
		for _, source := range []struct {
			name  string
			check func(object.Object, *field.Path)
		}{{"secret", pr.files}, {"configMap", pr.files}, {"downwardAPI", pr.downward},
			{"serviceAccountToken", pr.token}, {"clusterTrustBundle", pr.trustBundle},
			{"podCertificate", pr.podCertificate}} {
			if v := object.Map(s, source.name); v != nil {
				n++
				source.check(v, path.Child(source.name))
			}
		}
		if n > 1 {
			val.Forbidden(path, "may not specify more than 1 volume type per source")
		}
	}
}

// take reports an error if another item has the file already; value is shown in the error.
func (p *projection) take(file string, value any) {
	if p.taken[file] {
		p.Invalid(p.path, value, "conflicting duplicate paths")
	}
	p.taken[file] = true
}

func (p *projection) files(v object.Object, path *field.Path) {
	if object.String(v, "name") == "" {
		p.Required(path.Child("name"), "")
	}
	for i, item := range rule.Objects(v["items"]) {
		p.Block("KeyToPath", item, nil, path.Child("items").Index(i))
		if file := object.String(item, "path"); file != "" {
			p.take(file, object.String(v, "name"))
		}
	}
}

func (p *projection) downward(v object.Object, path *field.Path) {
	for _, item := range rule.Objects(v["items"]) {
		downwardFile(p.Validation, item, path)
		if file := object.String(item, "path"); file != "" {
			p.take(file, file)
		}
	}
}

func (p *projection) token(v object.Object, path *field.Path) {
	life, _ := object.Int(v, "expirationSeconds")
	if life < 600 {
		p.Invalid(path.Child("expirationSeconds"), life, "may not specify a duration less than 10 minutes")
	}
	if life > 1<<32 {
		p.Invalid(path.Child("expirationSeconds"), life, "may not specify a duration larger than 2^32 seconds")
	}
	file := object.String(v, "path")
	if file == "" {
		p.Required(p.path.Child("path"), "")
	}
	if wrong := rule.Unreserved(file); len(wrong) > 0 && !p.Excused(tokenPath) {
		p.Invalids(p.path.Child("path"), file, wrong)
	}
}

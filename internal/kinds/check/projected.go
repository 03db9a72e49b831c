package check

import "k8s.io/apimachinery/pkg/util/validation/field"

// projection is the work on a projected volume, whose sources share one tree of files.
type projection struct {
	*judgement
	path  *field.Path // of the volume
	taken map[string]bool
}

func projected(j *judgement, p place) {
	pr := &projection{j, p.path, map[string]bool{}}
	for i, s := range objects(p.object()["sources"]) {
		path := p.path.Child("sources").Index(i)
		n := 0
		for _, source := range []struct {
			name  string
			check func(object, *field.Path)
		}{{"secret", pr.files}, {"configMap", pr.files}, {"downwardAPI", pr.downward},
			{"serviceAccountToken", pr.token}} {
			if v := inner(s, source.name); v != nil {
				n++
				source.check(v, path.Child(source.name))
			}
		}
		if n > 1 {
			j.forbidden(path, "may not specify more than 1 volume type per source")
		}
	}
}

// take wants nobody else to have the file; value is what the error shows.
func (p *projection) take(file string, value any) {
	if p.taken[file] {
		p.invalid(p.path, value, "conflicting duplicate paths")
	}
	p.taken[file] = true
}

func (p *projection) files(v object, path *field.Path) {
	if text1(v, "name") == "" {
		p.required(path.Child("name"), "")
	}
	for i, item := range objects(v["items"]) {
		p.block("KeyToPath", item, nil, path.Child("items").Index(i))
		if file := text1(item, "path"); file != "" {
			p.take(file, text1(v, "name"))
		}
	}
}

func (p *projection) downward(v object, path *field.Path) {
	for _, item := range objects(v["items"]) {
		p.downwardFile(item, path)
		if file := text1(item, "path"); file != "" {
			p.take(file, file)
		}
	}
}

func (p *projection) token(v object, path *field.Path) {
	life, _ := number(v, "expirationSeconds")
	if life < 600 {
		p.invalid(path.Child("expirationSeconds"), life, "may not specify a duration less than 10 minutes")
	}
	if life > 1<<32 {
		p.invalid(path.Child("expirationSeconds"), life, "may not specify a duration larger than 2^32 seconds")
	}
	file := text1(v, "path")
	if file == "" {
		p.required(p.path.Child("path"), "")
	}
	if wrong := unreserved(file); len(wrong) > 0 && !p.excused(tokenPath) {
		p.invalids(p.path.Child("path"), file, wrong)
	}
}

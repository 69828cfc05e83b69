package power

import (
	"encoding/json"
	"net/http"
	"strings"
)

// redfishFake is a BMC with its quirks.
type redfishFake struct {
	*plug
	systems  []string
	types    []string // allowed; nil: by an ActionInfo of its own
	sessions bool     // no basic authentication
	absolute string   // an @odata.id that leads elsewhere
	tokens   map[string]bool
	refuse   string // a message for every reset
}

func (f *redfishFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const sessions = "/redfish/v1/SessionService/Sessions"
	if r.URL.Path == sessions && r.Method == http.MethodPost {
		f.tokens["t0ken"] = true
		w.Header().Set("X-Auth-Token", "t0ken")
		w.Header().Set("Location", sessions+"/1")
		w.WriteHeader(201)
		return
	}
	user, password, _ := r.BasicAuth()
	if !(user == "lab" && password == "s3cret" && !f.sessions) && !f.tokens[r.Header.Get("X-Auth-Token")] {
		http.Error(w, `{"error":{"message":"While attempting to establish a connection, denied"}}`, http.StatusUnauthorized)
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch name, action, _ := strings.Cut(strings.TrimPrefix(path, "/redfish/v1/Systems/"), "/"); {
	case path == sessions+"/1" && r.Method == http.MethodDelete:
		delete(f.tokens, "t0ken")
	case path == "/redfish/v1/Systems":
		var m []map[string]string
		for _, s := range f.systems {
			id := "/redfish/v1/Systems/" + s
			if f.absolute != "" {
				id = f.absolute + id
			}
			m = append(m, map[string]string{"@odata.id": id})
		}
		reply1(w, map[string]any{"Members": m, "Members@odata.count": len(m)})
	case !f.has(name):
		http.NotFound(w, r)
	case action == "":
		f.system(w, name)
	case action == "ResetActionInfo":
		reply1(w, map[string]any{"Parameters": []any{map[string]any{"Name": "ResetType", "AllowableValues": []string{"On", "ForceOff"}}}})
	case action == "Actions/ComputerSystem.Reset" && r.Method == http.MethodPost:
		f.reset(w, r, name)
	default:
		http.NotFound(w, r)
	}
}

func (f *redfishFake) system(w http.ResponseWriter, name string) {
	at := "/redfish/v1/Systems/" + name
	reset := map[string]any{"target": at + "/Actions/ComputerSystem.Reset"}
	if f.types != nil {
		reset["ResetType@Redfish.AllowableValues"] = f.types
	} else {
		reset["@Redfish.ActionInfo"] = at + "/ResetActionInfo"
	}
	reply1(w, map[string]any{"Id": name, "Name": "Server " + name, "PowerState": map[bool]string{true: "On", false: "Off"}[f.is(name)],
		"Actions": map[string]any{"#ComputerSystem.Reset": reset}})
}

func (f *redfishFake) reset(w http.ResponseWriter, r *http.Request, name string) {
	var body struct{ ResetType string }
	if json.NewDecoder(r.Body).Decode(&body) != nil || f.refuse != "" {
		w.WriteHeader(400)
		reply1(w, map[string]any{"error": map[string]any{"message": "A general error has occurred.", "@Message.ExtendedInfo": []any{map[string]string{"Message": f.refuse}}}})
		return
	}
	switch body.ResetType {
	case "On", "ForceOn":
		f.set(name, true)
	case "ForceOff":
		f.set(name, false)
	case "PushPowerButton":
		f.set(name, !f.is(name))
	default:
		http.Error(w, "no such type", 400)
		return
	}
	w.WriteHeader(204)
}

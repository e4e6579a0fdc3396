PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY);
INSERT INTO schema_version VALUES(1);
INSERT INTO schema_version VALUES(2);
INSERT INTO schema_version VALUES(3);
INSERT INTO schema_version VALUES(4);
INSERT INTO schema_version VALUES(5);
INSERT INTO schema_version VALUES(6);
INSERT INTO schema_version VALUES(7);
INSERT INTO schema_version VALUES(8);
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL,
    workspace    TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    outcome      TEXT,
    submitted_at INTEGER NOT NULL,
    ended_at     INTEGER,
    generation   INTEGER NOT NULL,
    spec         TEXT    NOT NULL,
    life         TEXT    NOT NULL
, code TEXT) STRICT;
INSERT INTO jobs VALUES(1,'job','lab','ada',5,'ended','succeeded',1795131005692075,1795131005721745,4,'{"name":"job","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:05.692075416Z","life":{"ended":{"at":"2026-11-19T23:30:05.721745274Z","outcome":"succeeded"}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:05.696523387Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:05.721444555Z","at":"2026-11-19T23:30:05.721745274Z","exit":"succeeded"}}}]},"ended_at":"2026-11-19T23:30:05.721745274Z","verdict":"succeeded"}]}',NULL);
INSERT INTO jobs VALUES(2,'done','lab','ada',5,'ended','succeeded',1795131005822517,1795131005857788,4,'{"name":"done","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"echo first; echo more >&2","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]},"labels":{"project":"ocr"}}','{"submitted_at":"2026-11-19T23:30:05.82251707Z","life":{"ended":{"at":"2026-11-19T23:30:05.857788411Z","outcome":"succeeded"}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:05.831173474Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:05.857421503Z","at":"2026-11-19T23:30:05.857788411Z","exit":"succeeded"}}}]},"ended_at":"2026-11-19T23:30:05.857788411Z","verdict":"succeeded"}]}',NULL);
INSERT INTO jobs VALUES(3,'failed','lab','ada',5,'ended','failed',1795131005890318,1795131005910035,4,'{"name":"failed","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"echo no; exit 3","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:05.890318079Z","life":{"ended":{"at":"2026-11-19T23:30:05.910035598Z","outcome":{"failed":{"attempt":1,"worker":0,"failure":{"cause":"exit","rank":0,"exit":{"code":3}}}}}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:05.893152101Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:05.909376914Z","at":"2026-11-19T23:30:05.910035598Z","exit":{"failed":{"cause":"exit","rank":0,"exit":{"code":3}}}}}}],"stop":{"since":"2026-11-19T23:30:05.910035598Z","why":{"worker_failed":{"worker":0}},"grace":"30s"}},"ended_at":"2026-11-19T23:30:05.910035598Z","verdict":{"failed":{"worker":0,"failure":{"cause":"exit","rank":0,"exit":{"code":3}}}}}]}',NULL);
INSERT INTO jobs VALUES(4,'stopped','lab','ada',5,'ended','stopped',1795131005947627,1795131006092136,5,'{"name":"stopped","workspace":"lab","image":"host","workers":1,"devices":{"count":0},"cpus":"0.01","framework":"none","command":"sleep 1000","priority":5,"preemptible":false,"grace":"0s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:05.947627835Z","life":{"ended":{"at":"2026-11-19T23:30:06.092136281Z","outcome":{"stopped":{"who":"ada"}}}},"past":[{"attempt":{"number":1,"placed_at":"2026-11-19T23:30:05.950547093Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[],"cpus":"0.01","memory":"0"},"state":{"ended":{"since":"2026-11-19T23:30:05.969342074Z","at":"2026-11-19T23:30:06.092136281Z","exit":"stopped"}}}],"stop":{"since":"2026-11-19T23:30:06.003203882Z","why":{"by_user":{"who":"ada"}},"grace":"0s"}},"ended_at":"2026-11-19T23:30:06.092136281Z","verdict":{"stopped":{"who":"ada"}}}]}',NULL);
INSERT INTO jobs VALUES(5,'runs','lab','ada',5,'running',NULL,1795131006118099,NULL,3,'{"name":"runs","workspace":"lab","image":"host","workers":1,"devices":{"kind":"ascend","count":4},"cpus":"0.01","framework":"none","command":"echo before; while ! [ -e @DATA@/go ]; do sleep 0.1; done; echo after","priority":5,"secrets":{"WANDB_API_KEY":{"name":"wandb"}},"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:06.118099795Z","life":{"active":{"number":1,"placed_at":"2026-11-19T23:30:06.122301578Z","workers":[{"grant":{"node":"sim-ascend-910b3-0","devices":[0,1,2,3],"cpus":"0.01","memory":"0"},"state":{"running":{"since":"2026-11-19T23:30:06.154681373Z"}}}]}}}',NULL);
INSERT INTO jobs VALUES(6,'waits','default','ada',5,'queued',NULL,1795131006184931,NULL,1,'{"name":"waits","workspace":"default","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"echo in turn","priority":5,"preemptible":true,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:06.184931046Z","life":{"queued":{"since":"2026-11-19T23:30:06.184931046Z","why":"submitted"}}}',NULL);
INSERT INTO jobs VALUES(7,'held','default','ada',5,'held',NULL,1795131006188308,NULL,2,'{"name":"held","workspace":"default","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":true,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:06.188308239Z","life":{"held":{"since":"2026-11-19T23:30:06.214790237Z","by":"ada"}}}',NULL);
INSERT INTO jobs VALUES(8,'asks','lab','ada',5,'held',NULL,1795131006217657,NULL,1,'{"name":"asks","workspace":"lab","image":"host","workers":1,"devices":{"kind":"ascend","count":8},"cpus":"0.01","framework":"none","command":"true","priority":5,"preemptible":false,"grace":"30s","retry":{"limit":0,"on":["node_lost","device_error","start_failed"]}}','{"submitted_at":"2026-11-19T23:30:06.217657188Z","life":{"held":{"since":"2026-11-19T23:30:06.217657188Z","by":"danlu","approval":{"resource":"ascend","asked":"8","limit":"4","workspace":"lab"}}}}',NULL);
CREATE TABLE job_labels (
    job   INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;
INSERT INTO job_labels VALUES(2,'project','ocr');
CREATE TABLE submissions (
    key TEXT    NOT NULL PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE
, digest TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    job     INTEGER,
    attempt INTEGER,
    kind    TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    message TEXT    NOT NULL
) STRICT;
INSERT INTO events VALUES(1,1795131005692075,1,NULL,'job_submitted','ada','submitted `job`');
INSERT INTO events VALUES(2,1795131005696523,1,1,'attempt_placed','danlu','attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO events VALUES(3,1795131005721745,1,1,'attempt_running','danlu','attempt 1 is running');
INSERT INTO events VALUES(4,1795131005721745,1,1,'attempt_ended','danlu','attempt 1 succeeded');
INSERT INTO events VALUES(5,1795131005721745,1,NULL,'job_ended','danlu','succeeded');
INSERT INTO events VALUES(6,1795131005822517,2,NULL,'job_submitted','ada','submitted `done`');
INSERT INTO events VALUES(7,1795131005831173,2,1,'attempt_placed','danlu','attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO events VALUES(8,1795131005857788,2,1,'attempt_running','danlu','attempt 1 is running');
INSERT INTO events VALUES(9,1795131005857788,2,1,'attempt_ended','danlu','attempt 1 succeeded');
INSERT INTO events VALUES(10,1795131005857788,2,NULL,'job_ended','danlu','succeeded');
INSERT INTO events VALUES(11,1795131005890318,3,NULL,'job_submitted','ada','submitted `failed`');
INSERT INTO events VALUES(12,1795131005893152,3,1,'attempt_placed','danlu','attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO events VALUES(13,1795131005910035,3,1,'attempt_running','danlu','attempt 1 is running');
INSERT INTO events VALUES(14,1795131005910035,3,1,'attempt_ended','danlu','attempt 1 failed: worker 0, rank 0 ended with code 3');
INSERT INTO events VALUES(15,1795131005910035,3,NULL,'job_ended','danlu','failed: worker 0, rank 0 ended with code 3');
INSERT INTO events VALUES(16,1795131005947627,4,NULL,'job_submitted','ada','submitted `stopped`');
INSERT INTO events VALUES(17,1795131005950547,4,1,'attempt_placed','danlu','attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO events VALUES(18,1795131005969342,4,1,'attempt_running','danlu','attempt 1 is running');
INSERT INTO events VALUES(19,1795131006003203,4,1,'stop_requested','ada','stop requested, with 0s of grace');
INSERT INTO events VALUES(20,1795131006092136,4,1,'attempt_ended','danlu','attempt 1 was stopped by ada');
INSERT INTO events VALUES(21,1795131006092136,4,NULL,'job_ended','danlu','stopped by ada');
INSERT INTO events VALUES(22,1795131006118099,5,NULL,'job_submitted','ada','submitted `runs`');
INSERT INTO events VALUES(23,1795131006122301,5,1,'attempt_placed','danlu','attempt 1 placed on sim-ascend-910b3-0');
INSERT INTO events VALUES(24,1795131006154681,5,1,'attempt_running','danlu','attempt 1 is running');
INSERT INTO events VALUES(25,1795131006184931,6,NULL,'job_submitted','ada','submitted `waits`');
INSERT INTO events VALUES(26,1795131006188308,7,NULL,'job_submitted','ada','submitted `held`');
INSERT INTO events VALUES(27,1795131006214790,7,NULL,'job_held','ada','held');
INSERT INTO events VALUES(28,1795131006217657,8,NULL,'job_submitted','ada','submitted `asks`');
CREATE TABLE counters (
    only_row          INTEGER PRIMARY KEY CHECK (only_row = 1),
    job_last_id       INTEGER NOT NULL,
    event_last_number INTEGER NOT NULL
, identity TEXT, epoch INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO counters VALUES(1,8,28,'d9e89cf75c8e2a083ad44ec7f63040d6',3);
CREATE TABLE node_notes (
    node TEXT NOT NULL PRIMARY KEY,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE directory (
    kind  TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
INSERT INTO directory VALUES('account','ada','{"name":"ada","display_name":"ada 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$NF1HNI6M7OgwETcEAySU4A$m/OTdps+8+ZZnzNrlsV7LvaKJ0mmqQ3FKBmkP88D0i8","created_at":"2026-11-19T23:30:04.530243266Z","unix_user":true}');
INSERT INTO directory VALUES('account','admin','{"name":"admin","admin":true,"standing":"active","created_at":"2026-11-19T23:30:04.332396234Z","unix_user":true}');
INSERT INTO directory VALUES('account','asks','{"name":"asks","email":"asks@example.org","admin":false,"standing":"waiting","password":"$argon2id$v=19$m=19456,t=2,p=1$4W5qZwA+3wycb8N2u0ypmw$MUbaJcGkfd29LtOBD+UHUeL5Xfo1UZn3LeYemm0M5c4","created_at":"2026-11-19T23:30:05.239984954Z","asks_for":"lab"}');
INSERT INTO directory VALUES('account','away','{"name":"away","display_name":"away 丹","admin":false,"standing":"disabled","password":"$argon2id$v=19$m=19456,t=2,p=1$qIQZFRBzwI2Mr0zHHna/9A$Cd87m8lIjDus/YnrpXeO41XSok8Un8tE+pZingek6RE","created_at":"2026-11-19T23:30:04.807978083Z","unix_user":true}');
INSERT INTO directory VALUES('account','invited','{"name":"invited","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$+Qj/co9yHPJyivpEuEAlQQ$7DQPvVajn6aeFSMTKSr84Av5jVfqgSm2MFTsQ8hWi78","created_at":"2026-11-19T23:30:05.18513403Z"}');
INSERT INTO directory VALUES('account','mfa','{"name":"mfa","display_name":"mfa 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$oXj0oKywQkkcY30oqTlURA$m/nKQ4jXoyYykEQW5lOFSofxA+22tLx9rMF3Y2754OU","created_at":"2026-11-19T23:30:04.696005064Z","second_factor":{"secret":"v1.1N1oSY8G7vG_HtbxtkNsoIHUOzYRlGMVnpD2Lcrp72b7m8o9vxR-gpQlTmBEOJej","confirmed":true,"last_step":59837700,"recovery":["b53744b30ee861e021c855f9bdc805a2ab9ebe8b8f0c18497f674063fa19dee2","27973b4388b0643aa50edd9bf0a33f1d53b1869a480b2c420858a151c505be4e","795cb7a1f9277a1c5a0ea42b5df560698be2aa3ed8e8bd925d71841e4e23bc65","0dee6d0a673d8d7e9ed22fbcd7d9e1e189e5cbfa71bbe6931ec39e0e5812a8a1","3b9bdd821556ebc33a1d05fd86dd322c5c5ae0a0df0fa994f0b181754113d12c","354775a9d1bd10b5fedae19300a110cf95fd185829f0d110131c9f7ea7eaec79","46305ee898280e9ac283213e735f9732245246511bf40c1b2e7dc2c1fde55f65","f1c6a0a9c51af7c0a1c9475524127cfcc0c4c2f5fa5271439c30f29b694b0f43","e869a33447c23b5527315862074a1fe46b6173a1ea95ae9b8555f61c4e69e395"]},"unix_user":true}');
INSERT INTO directory VALUES('account','nina-l','{"name":"nina-l","display_name":"Nina","admin":false,"standing":"active","created_at":"2026-11-19T23:30:05.452705243Z"}');
INSERT INTO directory VALUES('account','otto','{"name":"otto","display_name":"otto 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$o+HVNvaN5s3JbTBlazbn+g$HijulM9UvswIucUF89CZZuzzgWTQuQOKo8PSNe+thic","created_at":"2026-11-19T23:30:04.594927982Z","unix_user":true}');
INSERT INTO directory VALUES('account','vera','{"name":"vera","display_name":"vera 丹","admin":false,"standing":"active","password":"$argon2id$v=19$m=19456,t=2,p=1$G8Q7U65l2zleb4nTqC0w5g$CAMFX64xlRF0z7Oa8q93CLiMTAs8tCeO1ZpVOu3k/HQ","created_at":"2026-11-19T23:30:04.63814067Z","unix_user":true}');
INSERT INTO directory VALUES('audit_head','','{"number":47,"entry":"5595691bf46e4d3772c342b3ee398be93fe7b60195cf708f8da3116ebfb3cc97","directory":"55a792f8c50270f0d596b6f114f1b716d1f8f25a01661488f54bdc45b6405596"}');
INSERT INTO directory VALUES('former_account','left','{"deleted_at":"2026-11-19T23:30:05.482262082Z"}');
INSERT INTO directory VALUES('former_workspace','gone','{"deleted_at":"2026-11-19T23:30:05.489622091Z"}');
INSERT INTO directory VALUES('invitation','2090a2b596c8f91b81d816f77287f4ddff1b6297012e0202520a6fe39d5b77e4','{"id":"57abae58e2a6","workspace":"lab","role":"viewer","by":"otto","created_at":"2026-11-19T23:30:05.109854835Z","expires_at":"2026-12-19T23:30:05.109854835Z"}');
INSERT INTO directory VALUES('member','lab/ada','{"role":"member"}');
INSERT INTO directory VALUES('member','lab/invited','{"role":"member"}');
INSERT INTO directory VALUES('member','lab/mfa','{"role":"member"}');
INSERT INTO directory VALUES('member','lab/otto','{"role":"owner"}');
INSERT INTO directory VALUES('member','lab/vera','{"role":"viewer"}');
INSERT INTO directory VALUES('member','vision/nina-l','{"role":"owner","from_group":true}');
INSERT INTO directory VALUES('milestone','admin_signed_in','{}');
INSERT INTO directory VALUES('s3_key','RFD5GQ2JGGY3OULLVNMT','{"account":"ada","name":"bucket","secret":"v1.HT8QEq-EeTym_JfJc-5q9KOe3y3JHK0cGjKu709zWTBgc5gJ_wxCPPiiY6vYKKRjdMzGnbbm-18mujzjLwVBB8AnmA8","created_at":"2026-11-19T23:30:05.104917794Z"}');
INSERT INTO directory VALUES('secret','lab/wandb','{"sealed":"v1.wRJ3DwuYhPuCvqSgr1dupfxgSyg6939WER33ne6L9uzjTjW5NvfVISfbgg_lvsLzI1Q","changed_at":"2026-11-19T23:30:05.466017628Z","changed_by":"otto"}');
INSERT INTO directory VALUES('sharing','','{"lending":true,"minimum_run_time":"10m"}');
INSERT INTO directory VALUES('ssh_key','SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA','{"id":"164afa75b25c","account":"ada","name":"ada@laptop","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f","created_at":"2026-11-19T23:30:05.096412776Z"}');
INSERT INTO directory VALUES('subject','http://127.0.0.1:43241 7','{"account":"nina-l","linked_at":"2026-11-19T23:30:05.452645383Z"}');
INSERT INTO directory VALUES('token','0ad03466d4ff406eefe17216a7257ad6e710b69900a3bb0c32d0fff03a8d1145','{"id":"4bf8d7c13544","account":"vera","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.04606849Z","expires_at":"2026-11-26T23:30:05.04606849Z"}');
INSERT INTO directory VALUES('token','2c0206598c8bbe5eefc90e8086a4b6a2e13b66128940824b82544241b960f6a4','{"id":"4a016ae541f2","account":"otto","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.009025954Z","expires_at":"2026-11-26T23:30:05.009025954Z"}');
INSERT INTO directory VALUES('token','44b820cbe7ffe67e843c27b4e372d674269854b2c21938fbca509c5614b153a8','{"id":"80b6cdb30b02","account":"admin","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.511163833Z","expires_at":"2026-11-26T23:30:05.511163833Z"}');
INSERT INTO directory VALUES('token','5802b88109e48f995f30b4f9136d28379095af434210af1a2b10e5a6a4ee6e4e','{"id":"fe89aa8a345b","account":"ada","kind":"api","name":"for a year","scope":"all","created_at":"2026-11-19T23:30:05.084797183Z","expires_at":"2027-11-19T23:30:05.084797183Z"}');
INSERT INTO directory VALUES('token','64bb262f83a5a2715ccf99dfea17a2d0c8859de2ca326489aa055ea1d2ced5f7','{"id":"e0b74b976c8a","account":"ada","kind":"api","name":"script","scope":"jobs","created_at":"2026-11-19T23:30:05.053094881Z"}');
INSERT INTO directory VALUES('token','773f6ef206658f49d4e31669234aeae2acf4c0b1e88c0b2563254aad6cf11dc4','{"id":"845051c2d8cd","account":"ada","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:04.960088219Z","expires_at":"2026-11-26T23:30:04.960088219Z"}');
INSERT INTO directory VALUES('token','86422665bb5584f7d6cda162b1b8c6ec211be44322a2bdce84f4d4bfcf2b2184','{"id":"dc3aa1eaaea4","account":"otto","kind":"api","name":"otto''s","scope":"read","created_at":"2026-11-19T23:30:06.174969614Z"}');
INSERT INTO directory VALUES('token','a5525dedb1c370cc0769df376a4b5962a5d675eef2d76e443cfbd9299c1fd92d','{"id":"e264c16cd088","account":"nina-l","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.456007433Z","expires_at":"2026-11-26T23:30:05.456007433Z"}');
INSERT INTO directory VALUES('token','a7f7283cabc7ff5e880dc869bc158c9cb9098dbb162b4c2e85c514e2795171d9','{"id":"43e084a05311","account":"ada","kind":"api","name":"all","scope":"all","created_at":"2026-11-19T23:30:05.068861371Z"}');
INSERT INTO directory VALUES('token','af44fdda595a0c7030e57292fbea89673dd707ca4715a09634c64a18118959c5','{"id":"7873cd6fc5d4","account":"mfa","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.29201743Z","expires_at":"2026-11-26T23:30:05.29201743Z"}');
INSERT INTO directory VALUES('token','c643edc2856cd7682f0b1b30a146460dd9ebadfdd9b29c47e15cf2a61b282729','{"id":"76c39673131b","account":"otto","kind":"sign_in_link","name":"a link to sign in","scope":"read","created_at":"2026-11-19T23:30:05.106801296Z","expires_at":"2026-11-19T23:40:05.106801296Z","session_ends":"2026-11-26T23:30:05.009025954Z","root":"4a016ae541f2"}');
INSERT INTO directory VALUES('token','cd23a9ea3a462964dccfbebd7b77d051d67d65444017f56e40a3c112ee445b08','{"id":"6add9ba3b280","account":"ada","kind":"api","name":"dashboard","scope":"read","created_at":"2026-11-19T23:30:05.06072964Z"}');
INSERT INTO directory VALUES('token','e5f2d5d672b8fc71d0df7c0a192ebc22893736d7bf39bb65d9fc92ce0638e209','{"id":"d15bbb7492b8","account":"mfa","kind":"session","name":"signed in from 127.0.0.1","scope":"all","created_at":"2026-11-19T23:30:05.40411143Z","expires_at":"2026-11-26T23:30:05.40411143Z"}');
INSERT INTO directory VALUES('token','fd4087080dc3cb4e735a59cb8e685dd6ac7f04dad206298f6c8a62e72413fecf','{"id":"367b8c673d57","account":"vera","kind":"password_link","name":"a link to set a password","scope":"read","created_at":"2026-11-19T23:30:05.10835759Z","expires_at":"2026-11-21T23:30:05.10835759Z"}');
INSERT INTO directory VALUES('unix_user','ada','{"uid":200000}');
INSERT INTO directory VALUES('workspace','lab','{"guaranteed":{"ascend":4},"limit":{"ascend":8},"per_user":{},"head_of_line":"backfill","approve_above":{"ascend":4}}');
INSERT INTO directory VALUES('workspace','vision','{"guaranteed":{},"limit":{},"per_user":{},"head_of_line":"backfill","default_priority":3,"shared_folder":"/srv/vision"}');
CREATE TABLE audit (
    number  INTEGER NOT NULL PRIMARY KEY,
    by_whom TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    entry   TEXT    NOT NULL
) STRICT;
INSERT INTO audit VALUES(1,'-','admin','{"number":1,"at":"2026-11-19T23:30:04.332441902Z","by":"-","from":"127.0.0.1","action":"account.create","subject":"admin","after":{"admin":true,"created_at":"2026-11-19T23:30:04.332396234Z","name":"admin","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"7506539fd65a49097b3c030c4bf4b2c0819ad784d9b79cf125f63c958131f562"}');
INSERT INTO audit VALUES(2,'-','admin','{"number":2,"at":"2026-11-19T23:30:04.35449623Z","by":"-","from":"127.0.0.1","action":"account.sign_in_link","subject":"admin","seal":"8138d75e191df8ce4c1b958ddcf766bf75e503cb8fb8112056216fe524255181"}');
INSERT INTO audit VALUES(3,'admin','lab','{"number":3,"at":"2026-11-19T23:30:04.405528092Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"lab","after":{"approve_above":{"ascend":4},"guaranteed":{"ascend":4},"head_of_line":"backfill","limit":{"ascend":8},"per_user":{}},"seal":"9e9f717893adb8516d7a36441a3fd6ca10582657dd2432ca2ba86ddc9f6834fb"}');
INSERT INTO audit VALUES(4,'admin','vision','{"number":4,"at":"2026-11-19T23:30:04.412799018Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"vision","after":{"default_priority":3,"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{},"shared_folder":"/srv/vision"},"seal":"6723ec7051a0165d1af3cffd4aab9e3e762578a35b7d4deda571e03cf7558fe1"}');
INSERT INTO audit VALUES(5,'admin','gone','{"number":5,"at":"2026-11-19T23:30:04.441348493Z","by":"admin","from":"127.0.0.1","action":"workspace.create","subject":"gone","after":{"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{}},"seal":"35dc57c79a92fa0200d03a6183012bb2875af244093f15069072c1c8a9f32258"}');
INSERT INTO audit VALUES(6,'admin','all workspaces','{"number":6,"at":"2026-11-19T23:30:04.461324518Z","by":"admin","from":"127.0.0.1","action":"sharing.change","subject":"all workspaces","before":{"lending":true,"minimum_run_time":"5m"},"after":{"lending":true,"minimum_run_time":"10m"},"seal":"a95468d93236f3813c526eab06bdb2793889cee8bd1cc423f3e42ee0cdc59b73"}');
INSERT INTO audit VALUES(7,'admin','ada','{"number":7,"at":"2026-11-19T23:30:04.530338849Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"ada","after":{"admin":false,"created_at":"2026-11-19T23:30:04.530243266Z","display_name":"ada 丹","name":"ada","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"508c890b5af23111b003eef25a5ed1d93bf15905d5b4045490419bbde430cb43"}');
INSERT INTO audit VALUES(8,'admin','otto','{"number":8,"at":"2026-11-19T23:30:04.595024927Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"otto","after":{"admin":false,"created_at":"2026-11-19T23:30:04.594927982Z","display_name":"otto 丹","name":"otto","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"520441e1404c999059365276837f1eeed14a63052f613823d68f3c7d2b518b1d"}');
INSERT INTO audit VALUES(9,'admin','vera','{"number":9,"at":"2026-11-19T23:30:04.638239238Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"vera","after":{"admin":false,"created_at":"2026-11-19T23:30:04.63814067Z","display_name":"vera 丹","name":"vera","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"2a70b5a7f2e40937d0cb0893dc5880fe10fb230aa0f5e3099acb783c1c53d39a"}');
INSERT INTO audit VALUES(10,'admin','mfa','{"number":10,"at":"2026-11-19T23:30:04.696110051Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:04.696005064Z","display_name":"mfa 丹","name":"mfa","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"eb643f612544df089805dec8d44d9102b571dbab6cd203d0d970bc954216909c"}');
INSERT INTO audit VALUES(11,'admin','left','{"number":11,"at":"2026-11-19T23:30:04.748116438Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"left","after":{"admin":false,"created_at":"2026-11-19T23:30:04.748006594Z","display_name":"left 丹","name":"left","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"f9d9539096057c73f7de801cb7e6e8127f0d6934f7f9f631d23fd78105d6a103"}');
INSERT INTO audit VALUES(12,'admin','away','{"number":12,"at":"2026-11-19T23:30:04.808086575Z","by":"admin","from":"127.0.0.1","action":"account.create","subject":"away","after":{"admin":false,"created_at":"2026-11-19T23:30:04.807978083Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"seal":"0e631b5712579c6b3a5d97f63583771cd34af9508b8319e80b0f26f4df853f49"}');
INSERT INTO audit VALUES(13,'admin','lab','{"number":13,"at":"2026-11-19T23:30:04.813426198Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"ada","role":"member"},"seal":"e8bb1f9de304dd6d2cc0045f22bba4066bd674b1cd8dede71412c99783a7aebd"}');
INSERT INTO audit VALUES(14,'admin','lab','{"number":14,"at":"2026-11-19T23:30:04.825043342Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"otto","role":"owner"},"seal":"cffca53769f893f837654afad0a97da5b4959c74929e2e021616ff57168cb34c"}');
INSERT INTO audit VALUES(15,'admin','lab','{"number":15,"at":"2026-11-19T23:30:04.827176317Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"vera","role":"viewer"},"seal":"0a8c9aba51b97e6e95449d14dcba563462625d707acb2331ef955a29919ed58b"}');
INSERT INTO audit VALUES(16,'admin','lab','{"number":16,"at":"2026-11-19T23:30:04.836910931Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"mfa","role":"member"},"seal":"c310b5ca0d92af5fd45c887acb3fb718b40c4c199c2565a2c31e5b238ae3996b"}');
INSERT INTO audit VALUES(17,'admin','lab','{"number":17,"at":"2026-11-19T23:30:04.838824949Z","by":"admin","from":"127.0.0.1","action":"member.change","subject":"lab","after":{"account":"left","role":"member"},"seal":"10523d08014f80421314595f18936f2fc4e881e53329ea6d6d636ba9de2e7282"}');
INSERT INTO audit VALUES(18,'ada','ada','{"number":18,"at":"2026-11-19T23:30:04.960193526Z","by":"ada","from":"127.0.0.1","action":"session.begin","subject":"ada","after":{"with":"password"},"seal":"b2d48c91ed87f255bfb709e63c52adcf707715a292381ddc42edef78b7d93022"}');
INSERT INTO audit VALUES(19,'otto','otto','{"number":19,"at":"2026-11-19T23:30:05.00913015Z","by":"otto","from":"127.0.0.1","action":"session.begin","subject":"otto","after":{"with":"password"},"seal":"362546922ca59366e9e487c01b348ec2eb7f3fc41a4d6dca297cf792952e493b"}');
INSERT INTO audit VALUES(20,'vera','vera','{"number":20,"at":"2026-11-19T23:30:05.046166036Z","by":"vera","from":"127.0.0.1","action":"session.begin","subject":"vera","after":{"with":"password"},"seal":"fcf2aedaafd57eded095cd6ee37c181756f28fbc40a8d0c73d6ae5380690e05c"}');
INSERT INTO audit VALUES(21,'ada','ada','{"number":21,"at":"2026-11-19T23:30:05.053186197Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.053094881Z","id":"e0b74b976c8a","kind":"api","name":"script","scope":"jobs"},"seal":"3354f3d78aa2ae262525b0a93757cf334abceb0c6e08d7665227fcd47f5aff36"}');
INSERT INTO audit VALUES(22,'ada','ada','{"number":22,"at":"2026-11-19T23:30:05.060780456Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.06072964Z","id":"6add9ba3b280","kind":"api","name":"dashboard","scope":"read"},"seal":"fe8fb2517b71fab97fb1743995ba2e610d2d5fab7e99c734374e0da1a04404f8"}');
INSERT INTO audit VALUES(23,'ada','ada','{"number":23,"at":"2026-11-19T23:30:05.068916864Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.068861371Z","id":"43e084a05311","kind":"api","name":"all","scope":"all"},"seal":"85acf970b84af4f15ac0c7728d2653136c7e216b0bc2509275433edf7a19d36f"}');
INSERT INTO audit VALUES(24,'ada','ada','{"number":24,"at":"2026-11-19T23:30:05.076882477Z","by":"ada","from":"127.0.0.1","action":"token.create","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.076825411Z","expires_at":"2027-11-19T23:30:05.076825411Z","id":"fe89aa8a345b","kind":"api","name":"for a year","scope":"all"},"seal":"38416df6654924e2d5591dd8b91f21760a036edf06264f5034de2dca2dbfc856"}');
INSERT INTO audit VALUES(25,'ada','ada','{"number":25,"at":"2026-11-19T23:30:05.084864574Z","by":"ada","from":"127.0.0.1","action":"token.rotate","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.084797183Z","expires_at":"2027-11-19T23:30:05.084797183Z","id":"fe89aa8a345b","kind":"api","name":"for a year","scope":"all"},"seal":"cee1e2fec685a0d16528e1a2a0c37532868712fdbf374dd1f3a064c39d650042"}');
INSERT INTO audit VALUES(26,'ada','ada','{"number":26,"at":"2026-11-19T23:30:05.096454208Z","by":"ada","from":"127.0.0.1","action":"ssh_key.add","subject":"ada","after":{"created_at":"2026-11-19T23:30:05.096412776Z","fingerprint":"SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA","id":"164afa75b25c","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f","name":"ada@laptop"},"seal":"00fc6b1fe60bd80aeaa4d68db4a6ec760f76c38a34ff86b32962af1bf2726c9e"}');
INSERT INTO audit VALUES(27,'ada','ada','{"number":27,"at":"2026-11-19T23:30:05.104950713Z","by":"ada","from":"127.0.0.1","action":"s3_key.create","subject":"ada","after":{"access_key":"RFD5GQ2JGGY3OULLVNMT","created_at":"2026-11-19T23:30:05.104917794Z","name":"bucket"},"seal":"8da9633c1ac856715e0c183c976fdee602173c8bdcfb97266fbfa378fbafdb42"}');
INSERT INTO audit VALUES(28,'otto','otto','{"number":28,"at":"2026-11-19T23:30:05.106845643Z","by":"otto","from":"127.0.0.1","action":"account.sign_in_link","subject":"otto","seal":"a8e984b69835907d8599d4b6398b5a46264ddca730cf281e6e293382320d7d29"}');
INSERT INTO audit VALUES(29,'admin','vera','{"number":29,"at":"2026-11-19T23:30:05.10838415Z","by":"admin","from":"127.0.0.1","action":"account.password_link","subject":"vera","seal":"9553e5f539ee37f0467095e782f43a7850ecfbe978cac171d810dce1ffe59839"}');
INSERT INTO audit VALUES(30,'otto','lab','{"number":30,"at":"2026-11-19T23:30:05.109891901Z","by":"otto","from":"127.0.0.1","action":"invitation.create","subject":"lab","after":{"by":"otto","created_at":"2026-11-19T23:30:05.109854835Z","expires_at":"2026-12-19T23:30:05.109854835Z","id":"57abae58e2a6","role":"viewer","workspace":"lab"},"seal":"1aa2aab8b9bd15cc96c82af8e64124ed41028c82ee610b2f8bb79a456ef516af"}');
INSERT INTO audit VALUES(31,'otto','lab','{"number":31,"at":"2026-11-19T23:30:05.111370278Z","by":"otto","from":"127.0.0.1","action":"invitation.create","subject":"lab","after":{"by":"otto","created_at":"2026-11-19T23:30:05.111336267Z","expires_at":"2026-11-26T23:30:05.111336267Z","id":"24a250485fa3","role":"member","workspace":"lab"},"seal":"e101d8791aeae784ea30ff898cc386ed1c10fe044a757b027c1a9eacaeba46d6"}');
INSERT INTO audit VALUES(32,'invited','invited','{"number":32,"at":"2026-11-19T23:30:05.185253298Z","by":"invited","from":"127.0.0.1","action":"account.create","subject":"invited","after":{"admin":false,"created_at":"2026-11-19T23:30:05.18513403Z","name":"invited","second_factor":false,"standing":"active","unix_user":false,"workspaces":[]},"seal":"5322bbc865e64bece04e47788cd7fa7b7a78b5deab8b16317b125cc0752df12a"}');
INSERT INTO audit VALUES(33,'asks','asks','{"number":33,"at":"2026-11-19T23:30:05.240099074Z","by":"asks","from":"127.0.0.1","action":"account.create","subject":"asks","after":{"admin":false,"asks_for":"lab","created_at":"2026-11-19T23:30:05.239984954Z","email":"asks@example.org","name":"asks","second_factor":false,"standing":"waiting","unix_user":false,"workspaces":[]},"seal":"6171f3c341c41e67ced2797e6be5940482c70112f88aa14871c18e6a594a4c6c"}');
INSERT INTO audit VALUES(34,'mfa','mfa','{"number":34,"at":"2026-11-19T23:30:05.292119773Z","by":"mfa","from":"127.0.0.1","action":"session.begin","subject":"mfa","after":{"with":"password"},"seal":"7bfd5ef2ada7ef711bd3a879f3c842b6356ba3f0cdad3fda55859d8eced3236a"}');
INSERT INTO audit VALUES(35,'mfa','mfa','{"number":35,"at":"2026-11-19T23:30:05.342039905Z","by":"mfa","from":"127.0.0.1","action":"totp.enrol","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:04.696005064Z","display_name":"mfa 丹","name":"mfa","second_factor":false,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"1f0c36e1ae9230741192a5dfbf6c3f4c9b7a2c1588bd35543e62957eb904afb0"}');
INSERT INTO audit VALUES(36,'mfa','mfa','{"number":36,"at":"2026-11-19T23:30:05.3534357Z","by":"mfa","from":"127.0.0.1","action":"totp.confirm","subject":"mfa","after":{"admin":false,"created_at":"2026-11-19T23:30:04.696005064Z","display_name":"mfa 丹","name":"mfa","second_factor":true,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"84b5d870991237b332a31c920f5a5c61798479cc967f6b4be5c2c34d62b5fdc6"}');
INSERT INTO audit VALUES(37,'mfa','mfa','{"number":37,"at":"2026-11-19T23:30:05.404153123Z","by":"mfa","from":"127.0.0.1","action":"session.begin","subject":"mfa","after":{"with":"password"},"seal":"0799c8a4e0fe39125366408e39f35f2accce595e60873ca2c1629b5c5d21638c"}');
INSERT INTO audit VALUES(38,'nina-l','nina-l','{"number":38,"at":"2026-11-19T23:30:05.452760034Z","by":"nina-l","from":"127.0.0.1","action":"account.create","subject":"nina-l","after":{"admin":false,"created_at":"2026-11-19T23:30:05.452705243Z","display_name":"Nina","name":"nina-l","second_factor":false,"standing":"active","unix_user":false,"workspaces":[]},"seal":"90dc0416d5e9bf92582c9f6202e54049c2521a33e4bc010de4339c1dddbe14ea"}');
INSERT INTO audit VALUES(39,'nina-l','nina-l','{"number":39,"at":"2026-11-19T23:30:05.456060011Z","by":"nina-l","from":"127.0.0.1","action":"session.begin","subject":"nina-l","after":{"with":"provider"},"seal":"20358496c110b5244d929655669591dbad9fe56b9bebb4fe38a5e42a65a656b2"}');
INSERT INTO audit VALUES(40,'otto','lab','{"number":40,"at":"2026-11-19T23:30:05.46604582Z","by":"otto","from":"127.0.0.1","action":"secret.set","subject":"lab","after":{"secret":"wandb"},"seal":"7239d31984339994ef825f7bf3da4aa9eaf71210810d77bff2f55a87fcd0e52d"}');
INSERT INTO audit VALUES(41,'admin','away','{"number":41,"at":"2026-11-19T23:30:05.473135395Z","by":"admin","from":"127.0.0.1","action":"account.change","subject":"away","before":{"admin":false,"created_at":"2026-11-19T23:30:04.807978083Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"active","unix_user":true,"workspaces":[]},"after":{"admin":false,"created_at":"2026-11-19T23:30:04.807978083Z","display_name":"away 丹","name":"away","second_factor":false,"standing":"disabled","unix_user":true,"workspaces":[]},"seal":"0146bc41338811f616ab2930d145e81b947bc0b9f982086f4b3c34c9da0327e0"}');
INSERT INTO audit VALUES(42,'admin','left','{"number":42,"at":"2026-11-19T23:30:05.482329142Z","by":"admin","from":"127.0.0.1","action":"account.delete","subject":"left","before":{"admin":false,"created_at":"2026-11-19T23:30:04.748006594Z","display_name":"left 丹","name":"left","second_factor":false,"standing":"active","unix_user":true,"workspaces":[{"role":"member","workspace":"lab"}]},"seal":"379207d940440db8f035a1c8bdce29ff769ede9ba373d63c429d8d3876ea3ec8"}');
INSERT INTO audit VALUES(43,'admin','gone','{"number":43,"at":"2026-11-19T23:30:05.489666928Z","by":"admin","from":"127.0.0.1","action":"workspace.delete","subject":"gone","before":{"guaranteed":{},"head_of_line":"backfill","limit":{},"per_user":{}},"seal":"a71f2ba023f6281d75cf46da12b0861959cf66ec916213ad8071e0881b323615"}');
INSERT INTO audit VALUES(44,'admin','admin','{"number":44,"at":"2026-11-19T23:30:05.497050802Z","by":"admin","from":"127.0.0.1","action":"account.sign_in_link","subject":"admin","seal":"5976ed8b466b2bb6f68d1cb00460ad96b4e294f51465486a4c22aee830ceefae"}');
INSERT INTO audit VALUES(45,'admin','admin','{"number":45,"at":"2026-11-19T23:30:05.511232646Z","by":"admin","from":"127.0.0.1","action":"session.begin","subject":"admin","after":{"with":"link"},"seal":"bd1b6fe56d14732f4801999441eddf63b1b556866503c63f1aa7cf9aa3e209e8"}');
INSERT INTO audit VALUES(46,'-','ada','{"number":46,"at":"2026-11-19T23:30:05.690411822Z","by":"-","from":"-","action":"unix_user.give","subject":"ada","after":{"uid":200000},"seal":"e9e4862aaf8f1864a1114a8c9dd0babc19e028fd10685b7343201d72aa332fc8"}');
INSERT INTO audit VALUES(47,'otto','otto','{"number":47,"at":"2026-11-19T23:30:06.175048591Z","by":"otto","from":"127.0.0.1","action":"token.create","subject":"otto","after":{"created_at":"2026-11-19T23:30:06.174969614Z","id":"dc3aa1eaaea4","kind":"api","name":"otto''s","scope":"read"},"seal":"9288c15ac51b48b6c6386b84a1217b42b1c71efea83dfe03fde73a6a270eac1e"}');
CREATE TABLE job_counts (
    workspace TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    PRIMARY KEY (workspace, owner, status)
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts VALUES('default','ada','held',1);
INSERT INTO job_counts VALUES('default','ada','queued',1);
INSERT INTO job_counts VALUES('lab','ada','failed',1);
INSERT INTO job_counts VALUES('lab','ada','held',1);
INSERT INTO job_counts VALUES('lab','ada','queued',0);
INSERT INTO job_counts VALUES('lab','ada','running',1);
INSERT INTO job_counts VALUES('lab','ada','starting',0);
INSERT INTO job_counts VALUES('lab','ada','stopped',1);
INSERT INTO job_counts VALUES('lab','ada','stopping',0);
INSERT INTO job_counts VALUES('lab','ada','succeeded',2);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','job_search','job_search',0,'CREATE VIRTUAL TABLE job_search USING fts5 (words, content = '''', detail = none, tokenize = ''ascii'')');
CREATE TABLE IF NOT EXISTS 'job_search_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO job_search_data VALUES(1,X'0867');
INSERT INTO job_search_data VALUES(10,X'000000000108080008010101020101030101040101050101060101070101080101');
INSERT INTO job_search_data VALUES(137438953473,X'000000340330363201020161010302366601050236320102016601030236320101076f3631363436310101077736633631363201040504050504050a');
INSERT INTO job_search_data VALUES(274877906945,X'0000004203303634020302366602050236650202013502020165020302363502020166020302366502050236350201076f3631363436310201077736633631363202040505050404050405050a');
INSERT INTO job_search_data VALUES(412316860417,X'0000005e0330363103030236390305023663030201340302013503030236340302013603030236310305023639030201390303023663030502363503020163030302363503050236340301076f3631363436310301077736633631363203040505050404050405050405050405050a');
INSERT INTO job_search_data VALUES(549755813889,X'0000006903303634040201350403023634040201660403023730040502373004010237300403023635040502363404030237300405023635040201330403023734040502366604020134040302366604050237300401076f36313634363104010777366336313632040405040504050505050505050405050405050a');
INSERT INTO job_search_data VALUES(687194767361,X'000000430330366505030237330501023732050302373505050236650502013305020135050302366505050237330501076f3631363436310501077736633631363205040505050505040405050a');
INSERT INTO job_search_data VALUES(824633720833,X'0000005903303631060302363906050237340602013906030237340605023733060102373306020134060302373306020137060302363106050236390601076f36313634363106010f77363436353636363137353663373406040505050405050504050405050a');
INSERT INTO job_search_data VALUES(962072674305,X'0000004a03303634070201350703023663070502363407020138070302363507050236630702016307030236340701076f36313634363107010f77363436353636363137353663373407040504050504050504050a');
INSERT INTO job_search_data VALUES(1099511627777,X'0000003f03303631080302373308050236620802016208030237330801023733080302366208050237330801076f36313634363108010777366336313632080405050504050505050a');
CREATE TABLE IF NOT EXISTS 'job_search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO job_search_idx VALUES(1,X'',2);
INSERT INTO job_search_idx VALUES(2,X'',2);
INSERT INTO job_search_idx VALUES(3,X'',2);
INSERT INTO job_search_idx VALUES(4,X'',2);
INSERT INTO job_search_idx VALUES(5,X'',2);
INSERT INTO job_search_idx VALUES(6,X'',2);
INSERT INTO job_search_idx VALUES(7,X'',2);
INSERT INTO job_search_idx VALUES(8,X'',2);
CREATE TABLE IF NOT EXISTS 'job_search_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO job_search_docsize VALUES(1,X'08');
INSERT INTO job_search_docsize VALUES(2,X'0b');
INSERT INTO job_search_docsize VALUES(3,X'11');
INSERT INTO job_search_docsize VALUES(4,X'14');
INSERT INTO job_search_docsize VALUES(5,X'0b');
INSERT INTO job_search_docsize VALUES(6,X'0e');
INSERT INTO job_search_docsize VALUES(7,X'0b');
INSERT INTO job_search_docsize VALUES(8,X'0b');
CREATE TABLE IF NOT EXISTS 'job_search_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO job_search_config VALUES('version',4);
CREATE INDEX jobs_by_name ON jobs (name, id);
CREATE INDEX jobs_live ON jobs (id) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX job_labels_by_value ON job_labels (key, value, job);
CREATE INDEX submissions_by_job ON submissions (job);
CREATE INDEX events_by_job ON events (job, number);
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL;
CREATE INDEX audit_by_whom ON audit (by_whom, number);
CREATE INDEX audit_subject ON audit (subject, number);
CREATE INDEX jobs_by_status ON jobs (COALESCE(outcome, state), id);
CREATE INDEX jobs_by_workspace_status ON jobs (workspace, COALESCE(outcome, state), id);
CREATE INDEX jobs_by_owner_status ON jobs (owner, COALESCE(outcome, state), id);
CREATE TRIGGER events_are_deleted_after_their_job BEFORE DELETE ON events
WHEN OLD.job IS NULL OR EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
CREATE VIEW job_words (id, words) AS
    SELECT id, COALESCE((
        WITH RECURSIVE piece (start, length) AS (
            SELECT 1, 1
            UNION ALL
            SELECT CASE length WHEN 3 THEN start + 1 ELSE start END, CASE length WHEN 3 THEN 1 ELSE length + 1 END
                FROM piece WHERE start <= length(named.folded)
        )
        SELECT group_concat(hex(substr(named.folded, start, length)), ' ')
            FROM piece WHERE start + length <= length(named.folded) + 1
    ), '') || ' w' || hex(workspace) || ' o' || hex(owner)
    FROM (SELECT id, workspace, owner, CAST(lower(name) AS BLOB) AS folded FROM jobs) AS named;
CREATE TRIGGER job_search_is_told_of_new_jobs AFTER INSERT ON jobs
BEGIN
    INSERT INTO job_search (rowid, words) SELECT id, words FROM job_words WHERE id = NEW.id;
END;
CREATE TRIGGER job_search_forgets_what_changes BEFORE UPDATE OF name, workspace, owner ON jobs
BEGIN
    INSERT INTO job_search (job_search, rowid, words) SELECT 'delete', id, words FROM job_words WHERE id = OLD.id;
END;
CREATE TRIGGER job_search_is_told_of_changes AFTER UPDATE OF name, workspace, owner ON jobs
BEGIN
    INSERT INTO job_search (rowid, words) SELECT id, words FROM job_words WHERE id = NEW.id;
END;
CREATE TRIGGER job_search_is_told_of_deletions BEFORE DELETE ON jobs
BEGIN
    INSERT INTO job_search (job_search, rowid, words) SELECT 'delete', id, words FROM job_words WHERE id = OLD.id;
END;
PRAGMA writable_schema=OFF;
COMMIT;

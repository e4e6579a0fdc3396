//! Changes that the database may have taken without being able to say so.
//!
//! A connection that breaks between commit and answer leaves a change written that whoever made it takes for failed. For jobs the
//! job writer asks again. What is kept in memory of people, secrets and nodes is read again here: otherwise a token whose revocation was
//! written so would be good until the next start. Whose it is to know who has which user id sees to that itself, before the next is given.

use std::sync::Arc;
use std::time::Duration;

use danlu_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::app::App;

const ASK_AGAIN: Duration = Duration::from_secs(1);

/// As soon as there is a doubt, and then until the database answers.
pub(crate) async fn doubt_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = app.health.doubt.notified() => {}
            () = stop.cancelled() => return,
        }
        while let Err(error) = reconcile_doubts(&app).await {
            tracing::debug!("not known yet what was written: {}", crate::error_chain(&error));
            tokio::select! {
                () = tokio::time::sleep(ASK_AGAIN) => {}
                () = stop.cancelled() => return,
            }
        }
    }
}

/// Has memory say what the database says.
pub(crate) async fn reconcile_doubts(app: &App) -> Result<(), StoreError> {
    app.directory.read_again().await?;
    app.secrets.read_again().await?;
    app.read_notes_again().await
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::Ordering;

    use danlu_types::ProblemCode;

    use super::*;
    use crate::accounts::Visitor;
    use crate::reconcile::faults::FaultWorld;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn issue_16_what_was_written_and_not_heard_of_is_shown_once_the_database_answers() {
        let world = FaultWorld::new(false).await;
        let app = &world.app;
        let admin = app.directory.caller(&world.folder_token(), HERE).unwrap();
        let made = app.directory.make_token(&admin, new_token(), &visitor()).await.unwrap();
        assert!(app.directory.caller(&made.secret, HERE).is_some());

        app.health.loses_answers.store(true, Ordering::Relaxed);
        let problem = app.directory.revoke(&admin, &admin.person.name, &made.token.id).await.unwrap_err();
        assert_eq!(problem.code, ProblemCode::Unavailable);
        let name = app.node_views()[0].node.name.clone();
        let problem = app.cordon("admin", &name, "new fans").await.unwrap_err();
        assert_eq!(problem.code, ProblemCode::Unavailable);
        app.health.loses_answers.store(false, Ordering::Relaxed);

        reconcile_doubts(app).await.unwrap();
        assert!(app.directory.caller(&made.secret, HERE).is_none(), "it was revoked");
        assert!(app.directory.caller(&world.folder_token(), HERE).is_some(), "the folder's own is no row");
        assert_eq!(app.node_views()[0].node.cordoned.as_deref(), Some("new fans"));
    }

    #[tokio::test]
    async fn a_doubt_is_resolved_without_being_asked() {
        let world = FaultWorld::new(false).await;
        let (app, stop) = (&world.app, CancellationToken::new());
        let loops = tokio::spawn(doubt_loop(app.clone(), stop.clone()));
        let mut changes = app.directory.watch();
        app.health.loses_answers.store(true, Ordering::Relaxed);
        let admin = app.directory.caller(&world.folder_token(), HERE).unwrap();
        app.directory.make_token(&admin, new_token(), &visitor()).await.unwrap_err();
        app.health.loses_answers.store(false, Ordering::Relaxed);
        tokio::time::timeout(Duration::from_mins(3), changes.changed()).await.unwrap().unwrap();
        stop.cancel();
        loops.await.unwrap();
    }

    fn visitor() -> Visitor {
        Visitor { from: HERE, user: None, device: None }
    }

    fn new_token() -> danlu_types::api::NewToken {
        serde_json::from_value(serde_json::json!({ "name": "for a script", "scope": "all" })).unwrap()
    }
}
